"""The suppression list: recipients to whom nothing more is sent, because one bounced, complained or is gone.

One item a recipient and channel. Lifting one leaves the time of it behind: a copy of the event that put the
recipient there, however late, does not put it back; a newer event does.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, convert

from mailroom import clients
from mailroom.clock import Clock, milliseconds
from mailroom.dynamo import Change, ConditionFailed, Sets, number, plain, string, update

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Reason = Literal["bounce", "complaint", "gone"]

MAX_KEYS = 100
"""A BatchGetItem's."""
MAX_DETAIL = 300
_READS = 4
_NEWS = "(attribute_not_exists(lifted_at) OR lifted_at < :at)"
_OPEN = f"{_NEWS} AND attribute_not_exists(reason)"
# A complaint weighs more than a bounce: the one is a mailbox's, the other a person's will.
_WORSE = f"{_NEWS} AND (attribute_not_exists(reason) OR reason <> :worst)"


class Suppression(Struct, frozen=True):
    """Why a recipient gets nothing more on a channel: since `at` (epoch milliseconds, by the provider's
    clock), told by an event of message `message_id`; `detail` is for people."""

    recipient: str
    channel: str
    reason: Reason
    at: int
    detail: str = ""
    message_id: str = ""


class Unread(RuntimeError):
    """DynamoDB did not hand out all that was asked for: whoever asked must try again."""


class Suppressions:
    """One stage's list. Recipients are canonical: see `Message.addressees`."""

    def __init__(self, client: "DynamoDBClient", table: str, clock: Clock = time.time) -> None:
        self._client = client
        self._table = table
        self._clock = clock

    @classmethod
    def of(cls, table: str) -> "Suppressions":
        """The list in a table, by the process's own client."""
        return cls(clients.dynamodb(), table)

    def find(self, channel: str, recipients: Iterable[str]) -> dict[str, Suppression]:
        """Those of `recipients` who are on the list, in one read for every hundred of them. Raises Unread."""
        found: dict[str, Suppression] = {}
        keys = [_key(each, channel) for each in dict.fromkeys(recipients)]
        for start in range(0, len(keys), MAX_KEYS):
            for item in self._read(keys[start : start + MAX_KEYS]):
                if "reason" in item:
                    found[item["recipient"]] = _suppression(item)
        return found

    def mark(self, suppression: Suppression) -> bool:
        """Put a recipient on the list. False where that was known, or older than its lifting."""
        sets: Sets = {
            "reason": string(suppression.reason),
            "at": number(suppression.at),
            "detail": string(suppression.detail[:MAX_DETAIL]),
            "message_id": string(suppression.message_id),
        }
        change = Change(sets, _OPEN)
        if suppression.reason == "complaint":
            change = Change(sets, _WORSE, {":worst": string("complaint")})
        try:
            update(self._client, self._table, _key(suppression.recipient, suppression.channel), change)
        except ConditionFailed:
            return False
        return True

    def lift(self, recipient: str, channel: str) -> Suppression | None:
        """Take a recipient off the list. What it stood there for; None: it did not."""
        change = Change(
            {"lifted_at": number(milliseconds(self._clock()))},
            "attribute_exists(reason)",
            removes=("reason", "at", "detail", "message_id"),
        )
        try:
            old = update(self._client, self._table, _key(recipient, channel), change, "ALL_OLD")
        except ConditionFailed:
            return None
        return _suppression(old)

    def listed(self) -> Iterator[Suppression]:
        """All who are on the list, in no order."""
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._table, FilterExpression="attribute_exists(reason)"
        )
        yield from (_suppression(plain(item)) for page in pages for item in page["Items"])

    def _read(self, keys: list[Sets]) -> Iterator[dict[str, Any]]:
        asked: Any = {self._table: {"Keys": keys}}
        for _ in range(_READS):
            reply = self._client.batch_get_item(RequestItems=asked)
            yield from map(plain, reply.get("Responses", {}).get(self._table, []))
            asked = reply.get("UnprocessedKeys")
            if not asked:
                return
        raise Unread("the suppression list could not be read whole: DynamoDB throttles")


def _key(recipient: str, channel: str) -> Sets:
    return {"recipient": string(recipient), "channel": string(channel)}


def _suppression(item: Mapping[str, Any]) -> Suppression:
    return convert(dict(item), Suppression)
