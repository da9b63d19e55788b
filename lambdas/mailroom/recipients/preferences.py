"""People's own choices: topics that a recipient has opted out of.

One item a recipient and topic, of whatever channel: the recipient's form tells channels apart. Opting in
again leaves the time of it behind and takes the rest away. A repeat of either changes nothing.
"""

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, convert

from mailroom.aws import clients
from mailroom.aws.batch_get import batch_get
from mailroom.aws.dynamo import Change, ConditionFailed, Sets, number, plain, string, update
from mailroom.clock import Clock, milliseconds
from mailroom.message.address import spellings

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

By = Literal["one-click", "page", "operator"]
"""Who made the choice: a mail program's button (RFC 8058), the page behind the link, one of us for them."""

Pair = tuple[str, str]
"""A recipient and a topic."""


class OptOut(Struct, frozen=True):
    """A recipient wants nothing more of a topic, since `opted_out_at` (epoch milliseconds)."""

    recipient: str
    topic: str
    opted_out_at: int
    by: By


class Preferences:
    """One stage's. Recipients are canonical: see `Message.addressees`."""

    def __init__(self, client: "DynamoDBClient", table: str, clock: Clock = time.time) -> None:
        self.client = client
        self.table = table
        self._clock = clock

    @classmethod
    def of(cls, table: str) -> "Preferences":
        """Those in a table, by the process's own client."""
        return cls(clients.dynamodb(), table)

    def find(self, wanted: Iterable[Pair]) -> dict[Pair, OptOut]:
        """Those of the pairs that were opted out of, in one read for every hundred of them. Raises Unread."""
        asked = {pair: _spelt(pair) for pair in wanted}
        keys = [key(*pair) for pair in dict.fromkeys(each for spelt in asked.values() for each in spelt)]
        items = batch_get(self.client, {self.table: keys})[self.table]
        known = {(found.recipient, found.topic): found for found in map(opt_out_of, items) if found}
        return {pair: known[each] for pair, spelt in asked.items() for each in spelt if each in known}

    def get(self, recipient: str, topic: str) -> OptOut | None:
        """The choice as it stands this moment; None: nobody opted out."""
        for pair in _spelt((recipient, topic)):
            reply = self.client.get_item(TableName=self.table, Key=key(*pair), ConsistentRead=True)
            if found := opt_out_of(plain(reply.get("Item", {}))):
                return found
        return None

    def opt_out(self, recipient: str, topic: str, by: By) -> bool:
        """Nothing more of the topic to the recipient. False: that was so already."""
        now = self._now()
        sets = {"opted_out_at": number(now), "by": string(by)}
        change = Change(sets, "attribute_not_exists(opted_out_at)", removes=("opted_in_at",))
        try:
            update(self.client, self.table, key(recipient, topic), change)
        except ConditionFailed as failed:
            # At our own time: the SDK's second try, after the answer to the first was lost.
            return (failed.item.get("opted_out_at"), failed.item.get("by")) == (now, by)
        return True

    def opt_in(self, recipient: str, topic: str) -> bool:
        """The topic may be sent again. False: nobody had opted out."""
        changed = [self._opt_in(*pair) for pair in _spelt((recipient, topic))]
        return any(changed)

    def _opt_in(self, recipient: str, topic: str) -> bool:
        now = self._now()
        change = Change(
            {"opted_in_at": number(now)},
            "attribute_exists(opted_out_at)",
            removes=("opted_out_at", "by"),
        )
        try:
            update(self.client, self.table, key(recipient, topic), change)
        except ConditionFailed as failed:
            return failed.item.get("opted_in_at") == now
        return True

    def _now(self) -> int:
        return milliseconds(self._clock())


def _spelt(pair: Pair) -> list[Pair]:
    """The pair by each name that the table may have for its recipient."""
    return [(form, pair[1]) for form in spellings(pair[0])]


def key(recipient: str, topic: str) -> Sets:
    """Where a choice stands."""
    return {"recipient": string(recipient), "topic": string(topic)}


def opt_out_of(item: Mapping[str, Any]) -> OptOut | None:
    """A plain item of the table; None: it was opted in again, or is not there ({})."""
    return convert(dict(item), OptOut) if "opted_out_at" in item else None
