"""What became of a message, for whoever asks: read from the ledger, else from the mailbox. Writes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mailroom.attribute_values import plain
from mailroom.clock import epoch, iso

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

READY = "ready"
"""A message in the mailbox that nobody has claimed: there is no ledger item yet."""
REMEMBERED_SECONDS = 90 * 86_400
"""The ledger forgets no message within it, whatever the stage's settings are or were: the least that
`retention.ledger_days` may be."""
TIMES = (
    *("startedAt", "submittedAt", "completedAt", "sentAt", "deliveredAt", "delayedAt", "undeliveredAt"),
    *("bouncedAt", "complainedAt", "openedAt", "clickedAt", "readAt", "dead_lettered_at"),
)
"""The ledger's times, in epoch milliseconds there."""
DETAILS = (
    *("segments", "encoding", "delay_type", "error_code", "bounce_type", "bounce_subtype"),
    *("diagnostic_code", "complaint_type", "complaint_subtype", "carrier_done_date"),
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
    scheduled_for: str | None = None
    updated_at: str | None = None
    times: dict[str, str] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    callbacks: dict[str, dict[str, Any]] = field(default_factory=dict)
    recipients: dict[str, dict[str, Any]] = field(default_factory=dict)


class LedgerReader:
    """Reads both tables, always consistently: what was just put is found."""

    def __init__(self, client: "DynamoDBClient", ledger: str, mailbox: str) -> None:
        self._client = client
        self._ledger = ledger
        self._mailbox = mailbox

    def find(self, id_: str, event_type: str | None = None) -> list[MessageStatus]:
        """The messages with that id, by event_type; without one, all. []: there is none."""
        if event_type is None:
            return self._all(id_)
        key = {"id": {"S": id_}, "event_type": {"S": event_type}}
        for table, read in ((self._ledger, of_ledger), (self._mailbox, of_mailbox)):
            reply = self._client.get_item(TableName=table, Key=key, ConsistentRead=True)
            if "Item" in reply:
                return [read(plain(reply["Item"]))]
        return []

    def item(self, id_: str, event_type: str) -> dict[str, Any] | None:
        """The mailbox's own item; None: there is none."""
        key = {"id": {"S": id_}, "event_type": {"S": event_type}}
        reply = self._client.get_item(TableName=self._mailbox, Key=key, ConsistentRead=True)
        return plain(reply["Item"]) if "Item" in reply else None

    def _all(self, id_: str) -> list[MessageStatus]:
        found = {each["event_type"]: of_mailbox(each) for each in self._query(self._mailbox, id_)}
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


def of_mailbox(item: Mapping[str, Any]) -> MessageStatus:
    """The status of an item of the mailbox: ready, whatever the item says of itself."""
    to = item.get("to") or item.get("email")
    return MessageStatus(
        item["id"],
        item["event_type"],
        READY,
        to=to if _is_recipient(to) else None,
        scheduled_for=_due(item),
    )


def _due(item: Mapping[str, Any]) -> str | None:
    try:
        return iso(epoch(item["send_at"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _is_recipient(to: object) -> bool:
    return isinstance(to, str) or (isinstance(to, list) and all(isinstance(each, str) for each in to))


def of_ledger(item: Mapping[str, Any]) -> MessageStatus:
    """The status that an item of the ledger tells."""
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
        item.get("scheduledFor"),
        item.get("updatedAt"),
        times={name: _moment(item[name]) for name in TIMES if name in item},
        details={name: item[name] for name in DETAILS if name in item},
        history=[_line(each) for each in item.get("history", ())],
        callbacks=_entries(item.get("callbacks")),
        recipients=_entries(item.get("recipients")),
    )


def _entries(entries: Mapping[str, Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    return {name: _line(entry) for name, entry in (entries or {}).items()}


def _line(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _moment(value) if _is_time(name, value) else value for name, value in entry.items()}


def _is_time(name: str, value: object) -> bool:
    return (name == "at" or name in TIMES) and isinstance(value, int)


def _moment(milliseconds: Any) -> str:
    return iso((int(milliseconds) + 0.5) / 1000)  # the half outlives a float's rounding
