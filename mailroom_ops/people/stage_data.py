"""Access to the data of a stage: tables are read as a whole, and single items are changed or deleted."""

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
from mailroom_ops.people.person import Image, Person
from mailroom_ops.people.suppression_lists import ProvidersList
from mailroom_ops.shared import deployed_stage as stages
from mailroom_ops.shared.deeds import Deeds
from mailroom_ops.shared.deployed_stage import function_settings
from mailroom_ops.shared.tables import Position, segments

if TYPE_CHECKING:
    import boto3

SEGMENTS = 4


class ErasurePlace(Struct):
    """Numbers of a person's entries in a table or bucket: entries that were `found`, that were `erased`, that
    are `kept` because of --keep-choices, and that are `left` according to the search after the erasure."""

    place: str
    found: int = 0
    erased: int = 0
    kept: int = 0
    left: int = 0


class Left(Struct, frozen=True):
    """Data that could not be erased now. `why` is the reason, and ends with the operator's next step."""

    place: str
    what: str
    why: str


class Goes(Struct, frozen=True):
    """Data that expires without an erasure, at the time `by` (ISO 8601, UTC) at the latest."""

    what: str
    by: str


class Erased(Struct, frozen=True):
    """Output of the command `people erase`."""

    stage: str
    dry_run: bool
    at: str
    """Time of the run."""
    by: str
    """ARN of the operator."""
    places: list[ErasurePlace]
    cancelled: int
    """Number of messages that had no outcome, and were cancelled."""
    remains: list[Left]
    ids: list[str]
    """Ids that contain the recipient."""
    ids_until: str | None
    """Time at which the last of these ids is deleted (ISO 8601, UTC)."""
    ses: ProvidersList
    """Result for the address on the mail provider's own suppression list."""
    left: int
    """Number of entries that the search after the erasure found, including entries in `remains`. In a dry
    run, the number of entries that were found."""
    goes: list[Goes]
    """Places that may still have data of the recipient, which expires there."""


class ItemChanged(Exception):
    """Error: the item has changed since it was read."""


class StageData:
    """Tables and buckets of one stage. Telephone numbers without a country code are numbers of
    `default_region`, unless it is empty. `ttl` is the time in seconds for which the ledger stores an item
    after its last change."""

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        """Read the environment variables of the functions `dispatch` and `messages-api`. Raises ClientError,
        and Refused if the stage is not deployed, or was deployed by a version with other settings."""
        facts = function_settings(session.client("lambda"), stages.name(stage, "dispatch"), DispatchSettings)
        self.session = session
        self.stage = stage
        self.default_region = facts.default_region
        self.ttl = facts.ledger_ttl_seconds
        self.payloads = facts.payload_bucket
        self.deeds = Deeds(session, stage)
        self.rows = self.deeds.search()[1]
        """Object that makes the rows of the table `search`; None for a stage without search."""
        self.dynamodb = session.client("dynamodb")
        self.s3 = session.client("s3")
        self.clock: Clock = time.time
        self.caller = self.deeds.by()
        self.report: Callable[[str, int], None] = lambda _table, _count: None
        """Function that gets the name of a table that is read whole, and the number of items read so far."""

    def table(self, short: str) -> str:
        """Return the physical name of a table."""
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
        """Return a message's item in the mailbox or the ledger, or None if there is none."""
        reply = self.dynamodb.get_item(TableName=self.table(table), Key=where(key), ConsistentRead=True)
        image: dict[str, Any] | None = reply.get("Item")
        return image

    def delete(self, table: str, key: Mapping[str, Value]) -> bool:
        """Delete an item. Return False if it did not exist."""
        reply = self.dynamodb.delete_item(TableName=self.table(table), Key=key, ReturnValues="ALL_OLD")
        return "Attributes" in reply

    def rewrite(
        self, table: str, key: Mapping[str, Value], old: Image, new: Image, condition: str = ""
    ) -> None:
        """Change the attributes of an item in which `new` differs from `old`. Other attributes are not
        written, so that changes by others are not lost. Raises ItemChanged if one of these attributes no
        longer has its value in `old`, or if `condition` does not hold."""
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
            raise ItemChanged(f"{table}: an item has changed since it was read") from None


@dataclass
class ErasureRun:
    """Run over the data of a stage. It erases a person's data, or only counts it if `apply` is false. If
    `keep_choices` is true, it keeps opt-outs and the entries of Mailroom's and the mail provider's
    suppression lists. `remains` lists the data that could not be erased."""

    data: StageData
    person: Person
    apply: bool = False
    keep_choices: bool = False
    remains: list[Left] = field(default_factory=list)

    def leave(self, place: str, thing: str, reason: str) -> None:
        """Add data that could not be erased to `remains`, unless it is listed already."""
        remnant = Left(place, thing, reason)
        if remnant not in self.remains:
            self.remains.append(remnant)
