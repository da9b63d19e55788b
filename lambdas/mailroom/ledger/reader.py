"""What became of a message, for whoever asks: read from the ledger, else from the mailbox. Writes nothing."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo_values import plain
from mailroom.clock import Clock, epoch, iso

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

READY = "ready"
"""A message in the mailbox that the ledger does not know: nobody has claimed it yet. An item without a time
of its own may as well have been sent longer ago than the ledger remembers, for it does not say when it was
put."""
FORGOTTEN = "forgotten"
"""A message that the ledger does not know, of a time that it may have forgotten: it may have been sent
then."""
WAITS_WITH_CONTENT = ("day_used_up", "outside_window", "provider_refuses")
"""Codes of the `trouble` of a message that waits with its content: those of `HELD` in message.py, which the
client's wheel does not have."""
REMEMBERED_SECONDS = 90 * 86_400
"""The ledger forgets no message within it, whatever the stage's settings are or were: the least that
`retention.ledger_days` may be."""
TIMES = (
    *(
        "putAt",
        "startedAt",
        "submittedAt",
        "completedAt",
        "sentAt",
        "deliveredAt",
        "delayedAt",
        "undeliveredAt",
    ),
    *("bouncedAt", "complainedAt", "openedAt", "clickedAt", "readAt", "dead_lettered_at"),
)
"""The ledger's times, in epoch milliseconds there."""
DETAILS = (
    *("segments", "encoding", "delay_type", "error_code", "bounce_type", "bounce_subtype"),
    *("diagnostic_code", "complaint_type", "complaint_subtype", "carrier_done_date", "redirected_to"),
)
"""What providers told, and what the sender found out."""


@dataclass(frozen=True)
class MessageStatus:
    """Where a message is. Times are ISO 8601 in UTC; `to` is as the ledger (or the mailbox) has it.

    `error` and `trouble` are {code, message}: why it was not sent, and what keeps it from being sent now.
    `history` has {at, status, code?}, `callbacks` and `recipients` an entry each by name; all three are
    copies of what the ledger says, and never of the message's body.
    """

    id: str
    event_type: str
    status: str
    attempts: int = 0
    to: str | list[str] | None = None
    error: dict[str, str] | None = None
    trouble: dict[str, str] | None = None
    provider: str | None = None
    provider_id: str | None = None
    template: str | None = None
    template_version: int | None = None
    subject: str | None = None
    scheduled_for: str | None = None
    updated_at: str | None = None
    times: dict[str, str] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    callbacks: dict[str, dict[str, Any]] = field(default_factory=dict)
    recipients: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def waits_with_content(self) -> bool:
        """Whether it waits for the day's quota or its window: its item in the mailbox decides nothing."""
        return self.status == "scheduled" and (self.trouble or {}).get("code") in WAITS_WITH_CONTENT


class LedgerReader:
    """Reads both tables, always consistently: what was just put is found."""

    def __init__(self, client: "DynamoDBClient", ledger: str, mailbox: str, clock: Clock = time.time) -> None:
        self._client = client
        self._ledger = ledger
        self._mailbox = mailbox
        self._clock = clock

    def find(self, id_: str, event_type: str | None = None) -> list[MessageStatus]:
        """The messages with that id, by event_type; without one, all. []: there is none."""
        if event_type is None:
            return self._all(id_)
        known = self._item(self._ledger, id_, event_type)
        if known is not None:
            return [of_ledger(known)]
        there = self.item(id_, event_type)
        return [] if there is None else [of_mailbox(there, self._clock())]

    def item(self, id_: str, event_type: str) -> dict[str, Any] | None:
        """The mailbox's own item; None: there is none."""
        return self._item(self._mailbox, id_, event_type)

    def _item(self, table: str, id_: str, event_type: str) -> dict[str, Any] | None:
        key = {"id": {"S": id_}, "event_type": {"S": event_type}}
        reply = self._client.get_item(TableName=table, Key=key, ConsistentRead=True)
        return plain(reply["Item"]) if "Item" in reply else None

    def _all(self, id_: str) -> list[MessageStatus]:
        now = self._clock()
        found = {each["event_type"]: of_mailbox(each, now) for each in self._query(self._mailbox, id_)}
        found |= {each["event_type"]: of_ledger(each) for each in self._query(self._ledger, id_)}
        return [found[name] for name in sorted(found)]

    def _query(self, table: str, id_: str) -> list[dict[str, Any]]:
        pages = self._client.get_paginator("query").paginate(
            TableName=table,
            KeyConditionExpression="#id = :id",
            ExpressionAttributeNames={"#id": "id"},
            ExpressionAttributeValues={":id": {"S": id_}},
            ConsistentRead=True,
        )
        return [plain(each) for page in pages for each in page["Items"]]


def of_mailbox(item: Mapping[str, Any], now: float) -> MessageStatus:
    """The status, at `now` (epoch seconds), of an item of the mailbox that the ledger does not know. The item
    may be wrong in any way."""
    to = item.get("to") or item.get("email")
    due, ttl = _time(item.get("send_at")), item.get("ttl")
    times = (due, _time(item.get("expires_at")), ttl if isinstance(ttl, int) else None)
    old = "restored_id" in item or any(each is not None and each < now - REMEMBERED_SECONDS for each in times)
    return MessageStatus(
        item["id"],
        item["event_type"],
        FORGOTTEN if old else READY,
        to=to if _is_recipient(to) else None,
        scheduled_for=None if due is None else _told(due),
    )


def _time(text: object) -> float | None:
    try:
        return epoch(text) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None


def _told(due: float) -> str | None:
    """The time in UTC. None: there it is a year before 1 or after 9999."""
    try:
        return iso(due)
    except (ValueError, OverflowError, OSError):
        return None


def _is_recipient(to: object) -> bool:
    return isinstance(to, str) or (isinstance(to, list) and all(isinstance(each, str) for each in to))


def of_ledger(item: Mapping[str, Any]) -> MessageStatus:
    return MessageStatus(
        item["id"],
        item["event_type"],
        item["status"],
        int(item.get("attempts", 0)),
        item.get("to"),
        item.get("error"),
        item.get("trouble"),
        item.get("provider"),
        item.get("provider_id"),
        item.get("template"),
        item.get("template_version"),
        item.get("subject"),
        item.get("scheduledFor"),
        item.get("updatedAt"),
        times={name: _moment(item[name]) for name in TIMES if name in item} | _in_doubt(item),
        details={name: item[name] for name in DETAILS if name in item},
        history=[_shown(each) for each in item.get("history", ())],
        callbacks=_entries(item.get("callbacks")),
        recipients=_entries(item.get("recipients")),
    )


def _in_doubt(item: Mapping[str, Any]) -> dict[str, str]:
    """Since when it is not known whether the message was sent, where a later try was put back."""
    tries = item.get("unsettled_tries")
    if not tries or "startedAt" in item:
        return {}
    return {"unsettled_since": _moment(min(int(each.partition(" ")[0]) for each in tries))}


def _entries(entries: Mapping[str, Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    return {name: _shown(entry) for name, entry in (entries or {}).items()}


def _shown(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _moment(value) if _is_time(name, value) else value for name, value in entry.items()}


def _is_time(name: str, value: object) -> bool:
    return (name == "at" or name in TIMES) and isinstance(value, int)


def _moment(milliseconds: Any) -> str:
    return iso((int(milliseconds) + 0.5) / 1000)  # the half outlives a float's rounding
