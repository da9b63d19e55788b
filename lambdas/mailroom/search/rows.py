"""The rows of the table `search`: one for each recipient of a message, one for each message that its `unless`
names, and one among the newest.

A row has the message's key and nothing else of it. Who reads rows asks the ledger for the rest, so a row that
is late, doubled or left over says nothing wrong.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from mailroom.aws.dynamo_values import Sets, number, string
from mailroom.aws.secret import CachedSecret, read_secret
from mailroom.ledger.items import ERASED_AT, REDIRECTED_TO
from mailroom.message.address import comparable
from mailroom.message.message import CANARY, Key, run_of

SHARDS = 8
"""Partitions that the newest messages are spread over. DynamoDB takes 1,000 writes a second of each
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html)."""
PUT = re.compile(r"[0-9]{13}#[0-9a-f]{16}", re.ASCII)
"""A row's place among others: when the message was put, in epoch milliseconds, and a digest of its key."""
_SHAPE = '{"key": "<random>"}'


class _Key(Struct, frozen=True):
    key: Annotated[str, Meta(min_length=16)]


class Row(Struct, frozen=True):
    """One way to a message. `found_by` is a partition, `put` the place in it: see `PUT`."""

    found_by: str
    put: str
    key: Key
    ttl: int

    @property
    def place(self) -> Sets:
        """The row's key in DynamoDB's form."""
        return {"found_by": string(self.found_by), "put": string(self.put)}

    @property
    def image(self) -> Sets:
        """The row in DynamoDB's form."""
        key = {"id": string(self.key.id), "event_type": string(self.key.event_type)}
        return {**self.place, **key, "ttl": number(self.ttl)}


NEWEST = tuple(f"newest#{shard}" for shard in range(SHARDS))
"""The partitions of the newest messages."""
TO = "to#"
"""Beginning of the partition of each recipient."""


def partition_naming(event_type: str, id_: str) -> str:
    """Return the partition of messages that name another message in their `unless`, by its key."""
    return f"unless#{event_type}#{id_}"


def partitions_of(run: str) -> tuple[str, ...]:
    """The partitions of a run's messages; `run` is its campaign and its name: `spring#2026`."""
    return tuple(f"run#{run}#{shard}" for shard in range(SHARDS))


def run_row(item: Mapping[str, Any]) -> Row | None:
    """The row of a ledger's item among those of its run, as its id names it; None: it is of none, or was
    erased."""
    campaign, run = run_of(item.get("id", ""))
    put = _put(item)
    if not campaign or put is None or ERASED_AT in item:
        return None
    shard = int(put[-1], 16) % SHARDS
    return Row(f"run#{campaign}#{run}#{shard}", put, Key(item["id"], item["event_type"]), int(item["ttl"]))


class Rows(Struct, frozen=True):
    """Makes the rows of one stage. Recipients stand in them as a hash with the stage's own key: whoever reads
    the table alone learns of nobody."""

    secret: CachedSecret

    def of(self, item: Mapping[str, Any]) -> list[Row]:
        """All rows of a ledger's item, in plain Python. One that was erased has none, nor has one that an
        earlier version made, before it has an outcome, nor a canary: hundreds a day would hide the newest
        messages. Raises InvalidSecret and botocore's errors."""
        put = _put(item)
        if put is None or ERASED_AT in item or item["id"].startswith(CANARY):
            return []
        key, ttl = Key(item["id"], item["event_type"]), int(item["ttl"])
        recipients = dict.fromkeys(map(comparable, _recipients(item)))
        unless = item.get("unless", ())
        conditions = dict.fromkeys(partition_naming(entry["event_type"], entry["id"]) for entry in unless)
        places = [NEWEST[int(put[-1], 16) % SHARDS], *map(self.partition, recipients), *conditions]
        return [Row(each, put, key, ttl) for each in places]

    def partition(self, form: str) -> str:
        """The partition of a recipient, in one of the forms of `forms_of`. Raises as `of`."""
        problem = f"the secret for searching is not {_SHAPE}; put its key back"
        key = read_secret(self.secret.current().text, _Key, problem).key
        return f"{TO}{hmac.digest(key.encode(), form.encode(), hashlib.sha256)[:16].hex()}"


def _recipients(item: Mapping[str, Any]) -> Iterator[str]:
    to = item.get("to") or ()
    yield from (to,) if isinstance(to, str) else to
    yield from item.get("recipients") or ()
    if REDIRECTED_TO in item:
        yield item[REDIRECTED_TO]


def _put(item: Mapping[str, Any]) -> str | None:
    """The place of an item's rows; None: nothing in it says when, or there is no item ({})."""
    history = item.get("history") or ()
    at = item.get("putAt") or (history[0]["at"] if history else None)
    if at is None:
        return None
    digest = hashlib.sha256(f"{item['event_type']}\0{item['id']}".encode()).hexdigest()
    return f"{int(at):013d}#{digest[:16]}"
