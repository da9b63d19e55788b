"""Rows of the table `search`. A message has one row for each recipient, one for each message in its `unless`,
one for its template, and one in the list of the newest messages.

A row contains only the key of the message. Readers get the other attributes from the ledger, so a row that is
late, repeated or outdated is harmless.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from mailroom.aws.dynamo_values import Sets, number, string
from mailroom.aws.secret import CachedSecret, read_secret
from mailroom.ledger.items import ERASED_AT, REDIRECTED_TO, place_of, run_of
from mailroom.message.address import comparable
from mailroom.message.message import CANARY, Key

SHARDS = 8
"""Number of partitions of the newest messages, and of those of a run and of a template. DynamoDB allows 1,000
writes a second for each
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html)."""
PUT = re.compile(r"[0-9]{13}#[0-9a-f]{16}", re.ASCII)
"""Pattern of a row's sort key, which is `place_of` the time when the message was put."""
_SHAPE = '{"key": "<random>"}'


class _Key(Struct, frozen=True):
    key: Annotated[str, Meta(min_length=16)]


class Row(Struct, frozen=True):
    """Row of the table `search`, by which a message is found."""

    found_by: str
    """Partition key."""
    put: str
    """Sort key, in the form of `PUT`."""
    key: Key
    ttl: int

    @property
    def place(self) -> Sets:
        """Key of the row in DynamoDB's form."""
        return {"found_by": string(self.found_by), "put": string(self.put)}

    @property
    def image(self) -> Sets:
        """Row in DynamoDB's form."""
        key = {"id": string(self.key.id), "event_type": string(self.key.event_type)}
        return {**self.place, **key, "ttl": number(self.ttl)}


NEWEST = tuple(f"newest#{shard}" for shard in range(SHARDS))
"""Partition keys of the newest messages."""
TO = "to#"
"""Prefix of the partition keys of recipients."""


def partition_naming(event_type: str, id_: str) -> str:
    """Return the partition key for the messages that refer to the message with this key in their `unless`."""
    return f"unless#{event_type}#{id_}"


def partitions_of(kind: Literal["run", "template"], name: str) -> tuple[str, ...]:
    """Return the partition keys for the messages of a template, or of a run, whose name is the campaign and
    the name of the run, such as `spring#2026`."""
    return tuple(f"{kind}#{name}#{shard}" for shard in range(SHARDS))


def run_row(item: Mapping[str, Any]) -> Row | None:
    """Return the row of a ledger item in the list of its run's messages. Returns None for an erased message,
    and for a message that is not part of a run."""
    campaign, run = run_of(item)
    put = _put(item)
    if not campaign or put is None or ERASED_AT in item:
        return None
    place = partitions_of("run", f"{campaign}#{run}")[int(put[-1], 16) % SHARDS]
    return Row(place, put, Key(item["id"], item["event_type"]), int(item["ttl"]))


class Rows(Struct, frozen=True):
    """Creates the rows of a stage. Recipients are stored as hashes with a secret key of the stage, so the
    table does not reveal them."""

    secret: CachedSecret

    def of(self, item: Mapping[str, Any]) -> list[Row]:
        """Return the rows of a ledger item in plain Python, except for the run's row. The list is empty for
        an erased item, for an item without a time (see `_put`), and for a canary, because hundreds of
        canaries a day would hide the newest messages. Raises InvalidSecret and botocore's
        errors."""
        put = _put(item)
        if put is None or ERASED_AT in item or item["id"].startswith(CANARY):
            return []
        key, ttl, shard = Key(item["id"], item["event_type"]), int(item["ttl"]), int(put[-1], 16) % SHARDS
        recipients = dict.fromkeys(map(comparable, _recipients(item)))
        unless = item.get("unless", ())
        conditions = dict.fromkeys(partition_naming(entry["event_type"], entry["id"]) for entry in unless)
        template = [partitions_of("template", item["template"])[shard]] if "template" in item else []
        places = [NEWEST[shard], *map(self.partition, recipients), *conditions, *template]
        return [Row(place, put, key, ttl) for place in places]

    def partition(self, form: str) -> str:
        """Return the partition key for a recipient in one of the forms of `forms_of`. Raises the same errors
        as `of`."""
        problem = f"the secret for searching is not {_SHAPE}; restore its key"
        key = read_secret(self.secret.current().text, _Key, problem).key
        return f"{TO}{hmac.digest(key.encode(), form.encode(), hashlib.sha256)[:16].hex()}"


def _recipients(item: Mapping[str, Any]) -> Iterator[str]:
    to = item.get("to") or ()
    yield from (to,) if isinstance(to, str) else to
    yield from item.get("recipients") or ()
    if REDIRECTED_TO in item:
        yield item[REDIRECTED_TO]


def _put(item: Mapping[str, Any]) -> str | None:
    """Return the sort key of an item's rows. Returns None for an item without `putAt` and `history`, such as
    the {} in place of an expired item."""
    history = item.get("history") or ()
    put_ms = item.get("putAt") or (history[0]["at"] if history else None)
    if put_ms is None:
        return None
    return place_of(Key(item["id"], item["event_type"]), int(put_ms))
