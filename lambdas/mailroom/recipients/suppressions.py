"""The suppression list: recipients to whom nothing more is sent, because one bounced, complained or is gone.

One item a recipient and channel. Lifting one leaves the time of it behind: a copy of the event that put the
recipient there, however late, does not put it back; a newer event does.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, convert

from mailroom.aws import clients
from mailroom.aws.batch_get import batch_get
from mailroom.aws.dynamo import Change, ConditionFailed, Sets, number, plain, string, update
from mailroom.clock import Clock, milliseconds

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Reason = Literal["bounce", "complaint", "gone"]

MAX_DETAIL = 300
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


class Suppressions:
    """One stage's list. Recipients are canonical: see `Message.addressees`."""

    def __init__(self, client: "DynamoDBClient", table: str, clock: Clock = time.time) -> None:
        self.client = client
        self.table = table
        self._clock = clock

    @classmethod
    def of(cls, table: str) -> "Suppressions":
        """The list in a table, by the process's own client."""
        return cls(clients.dynamodb(), table)

    def find(self, channel: str, recipients: Iterable[str]) -> dict[str, Suppression]:
        """Those of `recipients` who are on the list, in one read for every hundred of them. Raises Unread."""
        keys = [key(each, channel) for each in dict.fromkeys(recipients)]
        items = batch_get(self.client, {self.table: keys})[self.table]
        return {found.recipient: found for found in map(suppression_of, items) if found}

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
            update(self.client, self.table, key(suppression.recipient, suppression.channel), change)
        except ConditionFailed:
            return False
        return True

    def lift(self, recipient: str, channel: str) -> bool:
        """Take a recipient off the list. False: it did not stand there."""
        now = milliseconds(self._clock())
        change = Change(
            {"lifted_at": number(now)},
            "attribute_exists(reason)",
            removes=("reason", "at", "detail", "message_id"),
        )
        try:
            update(self.client, self.table, key(recipient, channel), change)
        except ConditionFailed as failed:
            # At our own time: the SDK's second try, after the answer to the first was lost.
            return failed.item.get("lifted_at") == now
        return True

    def listed(self) -> Iterator[Suppression]:
        """All who are on the list, in no order."""
        pages = self.client.get_paginator("scan").paginate(
            TableName=self.table, FilterExpression="attribute_exists(reason)"
        )
        yield from (convert(plain(item), Suppression) for page in pages for item in page["Items"])


def key(recipient: str, channel: str) -> Sets:
    """Where a recipient stands."""
    return {"recipient": string(recipient), "channel": string(channel)}


def suppression_of(item: Mapping[str, Any]) -> Suppression | None:
    """A plain item of the table; None: it was lifted."""
    return convert(dict(item), Suppression) if "reason" in item else None
