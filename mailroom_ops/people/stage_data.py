"""Data of a stage: its tables and buckets, read whole and changed item by item."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws.dynamo_values import Value
from mailroom.clock import Clock
from mailroom.environment import DispatchSettings
from mailroom.ledger.items import where
from mailroom.message.message import Key
from mailroom_ops.messages.search import search_of
from mailroom_ops.people.person import Image, Person
from mailroom_ops.people.suppressions import ProvidersList
from mailroom_ops.shared import deployed_stage as stages
from mailroom_ops.shared.deployed_stage import caller, function_settings
from mailroom_ops.shared.tables import Position, segments

if TYPE_CHECKING:
    import boto3

SEGMENTS = 4


class ErasurePlace(Struct):
    """Counts of a table, bucket or queue: entries of the person that were `found` there, that were `erased`,
    that are `kept` because of --keep-choices, and that a last look still found (`left`)."""

    place: str
    found: int = 0
    erased: int = 0
    kept: int = 0
    left: int = 0


class Left(Struct, frozen=True):
    """Data that could not be erased now. `why` is the reason, and ends with the next step to take."""

    place: str
    what: str
    why: str


class Goes(Struct, frozen=True):
    """Data that expires by itself, and `by` when at the latest (ISO 8601, UTC)."""

    what: str
    by: str


class Erased(Struct, frozen=True):
    """Answer of `erase`."""

    stage: str
    dry_run: bool
    at: str
    """Time of the run."""
    by: str
    """ARN of the operator."""
    places: list[ErasurePlace]
    cancelled: int
    """Messages that were on their way, and will not be sent."""
    remains: list[Left]
    ids: list[str]
    """Ids that contain the recipient."""
    ids_until: str | None
    """Time at which the last of these ids is deleted (ISO 8601, UTC)."""
    ses: ProvidersList
    """Result for the address on the mail provider's own suppression list."""
    left: int
    """Entries that a last look has found, with those in `remains`."""
    goes: list[Goes]
    """Places that may still have a message of the recipient, and expire."""


class ItemChanged(Exception):
    """Error: the item has changed since it was read."""


class StageData:
    """Tables and buckets of one stage. Numbers without a country are dialled in `default_region`, if that is
    set; `ttl` is the life of a ledger item after its last change, in seconds."""

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        """Read the environments of `dispatch` and of the API. Raises Refused if the stage is not
        deployed, or by a version with other settings, and ClientError."""
        facts = function_settings(session.client("lambda"), stages.name(stage, "dispatch"), DispatchSettings)
        self.session = session
        self.stage = stage
        self.default_region = facts.default_region
        self.ttl = facts.ledger_ttl_seconds
        self.payloads = facts.payload_bucket
        search = search_of(session, stage)
        self.rows = None if search is None else search[1]
        """Maker of the rows of the table search; None for a stage without search."""
        self.dynamodb = session.client("dynamodb")
        self.s3 = session.client("s3")
        self.clock: Clock = time.time
        self.caller = caller(session)
        self.report: Callable[[str, int], None] = lambda _table, _count: None
        """Function that gets the name of a table that is read whole, and the number of items read so far."""

    def table(self, short: str) -> str:
        """A table's name."""
        return stages.name(self.stage, short)

    def scan(self, table: str) -> Iterator[dict[str, Value]]:
        """Yield every item of a table, in any order, by consistent reads."""

        def page(position: Position) -> tuple[Any, Any]:
            reply = self.dynamodb.scan(TableName=self.table(table), ConsistentRead=True, **position)
            return reply["Items"], reply.get("LastEvaluatedKey")

        count = 0
        for items in segments(SEGMENTS, page):
            yield from items
            count += len(items)
            self.report(table, count)

    def item(self, table: str, key: Key) -> dict[str, Value] | None:
        """A message's item in one of the two tables of messages."""
        reply = self.dynamodb.get_item(TableName=self.table(table), Key=where(key), ConsistentRead=True)
        image: dict[str, Any] | None = reply.get("Item")
        return image

    def delete(self, table: str, key: Mapping[str, Value]) -> bool:
        """Delete an item. False: there was none."""
        reply = self.dynamodb.delete_item(TableName=self.table(table), Key=key, ReturnValues="ALL_OLD")
        return "Attributes" in reply

    def rewrite(
        self, table: str, key: Mapping[str, Value], old: Image, new: Image, condition: str = ""
    ) -> None:
        """Bring an item from `old` to `new`, attribute by attribute, so that what others write beside these
        stays. Raises ItemChanged if one of them is not as in `old` any more, or if `condition` does not
        hold."""
        changed = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
        sets, removes, conditions = [], [], [condition] if condition else []
        names: dict[str, str] = {}
        values: dict[str, Value] = {}
        for index, name in enumerate(changed):
            names[f"#n{index}"] = name
            if name in old:
                values[f":old{index}"] = old[name]
                conditions.append(f"#n{index} = :old{index}")
            if name in new:
                values[f":new{index}"] = new[name]
                sets.append(f"#n{index} = :new{index}")
            else:
                removes.append(f"#n{index}")
        clauses = (("SET", sets), ("REMOVE", removes))
        try:
            self.dynamodb.update_item(
                TableName=self.table(table),
                Key=key,
                UpdateExpression=" ".join(f"{verb} {', '.join(terms)}" for verb, terms in clauses if terms),
                ConditionExpression=" AND ".join(conditions),
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            raise ItemChanged(f"{table}: an item has changed meanwhile") from None


@dataclass
class ErasureRun:
    """A pass over the data of a stage. It erases a person, or without `apply` only counts.
    `keep_choices`: opt-outs and the suppression list stay, SES's too. `remains`: what could not be erased."""

    data: StageData
    person: Person
    apply: bool = False
    keep_choices: bool = False
    remains: list[Left] = field(default_factory=list)

    def leave(self, place: str, thing: str, reason: str) -> None:
        """Note what is left, once."""
        remnant = Left(place, thing, reason)
        if remnant not in self.remains:
            self.remains.append(remnant)
