"""Reads the status of a message from the ledger. If the ledger does not have the message, the status follows
from its mailbox item."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo_values import plain
from mailroom.clock import Clock, epoch, iso
from mailroom.errors import can_be_key
from mailroom.ledger.items import ARRIVED_BEFORE, ERASED_AT, PAUSED, RUN_UNKNOWN, provider_of, run_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

READY = "ready"
"""Status of a message that is in the mailbox but not in the ledger, because it was not claimed yet. If its
item has a `send_at`, `expires_at` or `ttl`, that time is less than REMEMBERED_SECONDS ago. An item without
these times may also be of a message that was sent so long ago that its ledger item has expired."""
FORGOTTEN = "forgotten"
"""Status of a message that may have been sent so long ago that its ledger item has expired."""
REMEMBERED_SECONDS = 90 * 86_400
"""Seconds for which every ledger keeps the item of a message at least: the minimum of the setting
`retention.ledger_days`."""
TIMES = (
    *("putAt", "startedAt", "submittedAt", "completedAt", "sentAt", "deliveredAt", "delayedAt"),
    *("undeliveredAt", "bouncedAt", "complainedAt", "openedAt", "clickedAt", "readAt"),
    *("dead_lettered_at", ERASED_AT),
)
"""Attributes whose values are times, which the ledger stores in epoch milliseconds."""
DETAILS = (
    *("segments", "encoding", "delay_type", "error_code", "bounce_type", "bounce_subtype"),
    *("diagnostic_code", "complaint_type", "complaint_subtype", "carrier_done_date", "redirected_to"),
    *("pages", "sent_from", "erased_by"),
)
"""Attributes with facts about a message, from the provider and from the sender."""
TWICE = "may_have_arrived_twice"
"""Name in `details` that marks a message which may have arrived more than once."""


@dataclass(frozen=True)
class MarkedWait:
    """Reason why a message may not be sent yet, and its position among the messages that wait for the daily
    budget."""

    reason: str
    """`send_at`, `outside_window`, `day_used_up`, `provider_refuses`, `paused` or `run_unknown`."""
    line: str = ""
    """Channel for whose daily budget the message waits; empty if it waits for another reason."""
    place: int = 0
    """Time in epoch seconds when the message was put into the mailbox. Messages that wait for the daily
    budget are sent in the order of these times."""


@dataclass(frozen=True)
class MessageStatus:
    """Status of a message, with times in ISO 8601 and UTC. The fields do not contain the message's
    content."""

    id: str
    event_type: str
    status: str
    attempts: int = 0
    to: str | list[str] | None = None
    """Recipients, in the form of the ledger or of the mailbox."""
    error: dict[str, str] | None = None
    """Reason why the message failed: {code, message}."""
    trouble: dict[str, str] | None = None
    """Reason why the latest try did not send the message, or why the try's outcome is unknown: {code,
    message}."""
    provider: str | None = None
    """Provider that has accepted the message or, while the outcome of a try is unknown, may have."""
    provider_id: str | None = None
    template: str | None = None
    template_version: int | None = None
    subject: str | None = None
    scheduled_for: str | None = None
    """Time before which the message is not sent."""
    wait: MarkedWait | None = None
    """Reason why the message may not be sent yet. It is valid only while the status is `scheduled`."""
    updated_at: str | None = None
    times: dict[str, str] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    """Statuses so far: {at, status, code?}."""
    callbacks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Results of callbacks, by the callback's name."""
    unless: list[dict[str, Any]] = field(default_factory=list)
    """Conditions of the message: {id, event_type, status}, with a list of statuses."""
    recipients: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Outcome of each recipient by address, if the message has several recipients."""
    campaign: str | None = None
    """Campaign whose run composed the message."""

    @property
    def waits_for(self) -> str:
        """Reason why the message waits; empty if the message does not wait."""
        return self.wait.reason if self.wait is not None and self.status == "scheduled" else ""


class LedgerReader:
    """Reads the ledger and the mailbox with consistent reads, so that a message is found immediately after it
    was put into the mailbox."""

    def __init__(self, client: "DynamoDBClient", ledger: str, mailbox: str, clock: Clock = time.time) -> None:
        self._client = client
        self._ledger = ledger
        self._mailbox = mailbox
        self._clock = clock

    def find(self, id_: str, event_type: str | None = None) -> list[MessageStatus]:
        """Return the status of the message with this id and event_type, or without event_type the statuses of
        all messages with this id. The list is empty for an unknown message."""
        if not can_be_key(id_, event_type):
            return []
        if event_type is None:
            return self._all(id_)
        entry = self._item(self._ledger, id_, event_type)
        if entry is not None:
            return [of_ledger(entry)]
        item = self.item(id_, event_type)
        return [] if item is None else [of_mailbox(item, self._clock())]

    def item(self, id_: str, event_type: str) -> dict[str, Any] | None:
        """Return a message's mailbox item in plain Python, or None if the mailbox lacks the message."""
        return self._item(self._mailbox, id_, event_type)

    def _item(self, table: str, id_: str, event_type: str) -> dict[str, Any] | None:
        key = {"id": {"S": id_}, "event_type": {"S": event_type}}
        response = self._client.get_item(TableName=table, Key=key, ConsistentRead=True)
        return plain(response["Item"]) if "Item" in response else None

    def _all(self, id_: str) -> list[MessageStatus]:
        moment = self._clock()
        states = {item["event_type"]: of_mailbox(item, moment) for item in self._query(self._mailbox, id_)}
        states |= {item["event_type"]: of_ledger(item) for item in self._query(self._ledger, id_)}
        return [states[event_type] for event_type in sorted(states)]

    def _query(self, table: str, id_: str) -> list[dict[str, Any]]:
        pages = self._client.get_paginator("query").paginate(
            TableName=table,
            KeyConditionExpression="#id = :id",
            ExpressionAttributeNames={"#id": "id"},
            ExpressionAttributeValues={":id": {"S": id_}},
            ConsistentRead=True,
        )
        return [plain(item) for page in pages for item in page["Items"]]


def of_mailbox(item: Mapping[str, Any], moment: float) -> MessageStatus:
    """Return the status of a message that is not in the ledger, from its mailbox item, at `moment` (epoch
    seconds). Any attribute of the item except its key may be invalid."""
    to = item.get("to") or item.get("email")
    due, ttl = _time(item.get("send_at")), item.get("ttl")
    times = (due, _time(item.get("expires_at")), ttl if isinstance(ttl, int) else None)
    old = "restored_id" in item or any(
        time is not None and time < moment - REMEMBERED_SECONDS for time in times
    )
    return MessageStatus(
        item["id"],
        item["event_type"],
        FORGOTTEN if old else READY,
        to=to if _is_recipient(to) else None,
        scheduled_for=None if due is None else _iso(due),
        campaign=run_of(item)[0] or None,
    )


def _time(text: object) -> float | None:
    try:
        return epoch(text) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None


def _iso(due: float) -> str | None:
    """Return a time in ISO 8601 and UTC, or None if its year in UTC is before 1 or after 9999."""
    try:
        return iso(due)
    except (ValueError, OverflowError, OSError):
        return None


def _is_recipient(to: object) -> bool:
    return isinstance(to, str) or (
        isinstance(to, list) and all(isinstance(recipient, str) for recipient in to)
    )


def of_ledger(item: Mapping[str, Any]) -> MessageStatus:
    """Return the status of a message from its ledger item. `unsettled_since` in the times is the time of the
    first try whose outcome is unknown; it is left out while the message is claimed."""
    # All times have 13 digits, so the first text in their order is the oldest try.
    began, _, account = min(item.get("unsettled_tries", ()), default="").partition(" ")
    doubt = {"unsettled_since": _moment(began)} if began and "startedAt" not in item else {}
    return MessageStatus(
        item["id"],
        item["event_type"],
        item["status"],
        # An erasure adds one to `attempts`.
        int(item.get("attempts", 0)) - (ERASED_AT in item),
        item.get("to"),
        item.get("error"),
        item.get("trouble"),
        item.get("provider") or provider_of(account) or None,
        item.get("provider_id"),
        item.get("template"),
        item.get("template_version"),
        item.get("subject"),
        item.get("scheduledFor"),
        _wait(item),
        item.get("updatedAt"),
        times={name: _moment(item[name]) for name in TIMES if name in item} | doubt,
        details={name: item[name] for name in DETAILS if name in item}
        | ({TWICE: True} if may_have_arrived_twice(item) else {}),
        history=[_readable(entry) for entry in item.get("history", ())],
        callbacks=_entries(item.get("callbacks")),
        unless=item.get("unless", []),
        recipients=_entries(item.get("recipients")),
        campaign=run_of(item)[0] or None,
    )


def may_have_arrived_twice(item: Mapping[str, Any]) -> bool:
    """Return whether a message may have arrived more than once. `item` is its ledger item."""
    tries: int = max(len(item.get("unsettled_tries", ())), "provider_id" in item)
    return tries + int(item.get(ARRIVED_BEFORE, 0)) > 1


def _wait(item: Mapping[str, Any]) -> MarkedWait | None:
    if "wait" not in item:
        return None
    kind, channel, *_ = f"{item.get('waits_in', '')}#".split("#")
    mark, place = item["wait"], int(item.get("putAt", 0)) // 1000
    # The list in `waits_in` decides, because the reason in the mark is never changed: if a message waited for
    # its run, the mark has this reason even after the run goes on.
    first = "outside_window" if mark["reason"] in (PAUSED, RUN_UNKNOWN) else mark["reason"]
    reason = {PAUSED: PAUSED, RUN_UNKNOWN: RUN_UNKNOWN, "line": "day_used_up"}.get(kind, first)
    return MarkedWait(reason, channel if kind == "line" else "", place)


def _entries(entries: Mapping[str, Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    return {name: _readable(entry) for name, entry in (entries or {}).items()}


def _readable(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _moment(value) if _is_time(name, value) else value for name, value in entry.items()}


def _is_time(name: str, value: object) -> bool:
    return (name == "at" or name in TIMES) and isinstance(value, int)


def _moment(milliseconds: Any) -> str:
    # Half a millisecond is added, so that rounding down never loses a millisecond.
    return iso((int(milliseconds) + 0.5) / 1000)
