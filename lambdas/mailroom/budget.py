"""A day's budget: how many recipients may still be reached, counted in one item by conditional writes.

A provider's quota is of a rolling day: SES counts recipients over 24 hours
(https://docs.aws.amazon.com/ses/latest/dg/manage-sending-quotas.html). So the item has two counts for each
hour, `used_<hour>` of all and `bulk_<hour>` of bulk, hours since 1970, and their sums `used` and `bulk` from
the hour `oldest` on. What was granted in an hour counts until all of it was sent a whole day ago.

Bulk asks before it sends, and gets no more than the day has left after the reserve. Normal lanes are counted
after they have sent: a code waits for no answer of this item.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from mailroom.aws.dynamo_updates import ConditionFailed, try_update, update
from mailroom.aws.dynamo_values import Sets, number, plain, string
from mailroom.clock import Clock
from mailroom.errors import Contention

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

PerDay = Sequence[tuple[str, int]]
"""Recipients a day, each from a date (ISO, UTC) on; before the first date the first holds. () is no limit."""
HOUR = 3600
_DAY = 86_400
_LATEST = 900
"""Seconds after which nobody sends any more what was granted: no function runs for longer."""
CLOSED_SECONDS = HOUR
"""For how long bulk asks in vain after the provider has said that the day is used up. The provider frees what
was sent a day ago, hour by hour."""
_TRIES = 25
"""Each try that fails proves another worker's write, of which a stage has a few at a time."""

_ADD = "ADD #used :n, #bulk :n, #used_{0} :n, #bulk_{0} :n"
_SUMS = "#oldest = :oldest"
_OPEN = "(attribute_not_exists(closed_until) OR closed_until <= :now)"
_NO_LINE = "(attribute_not_exists(line_until) OR line_until <= :now)"
_ROOM = "#bulk <= :bulk_most AND #used <= :used_most"


class Grant(NamedTuple):
    """How many recipients bulk may reach now, and in which hour they count."""

    recipients: int
    hour: int


class Room(NamedTuple):
    """How many recipients bulk may have now, and when there are as many as somebody wants (epoch seconds)."""

    recipients: int
    again: float


class Budget:
    """The budget of one name, such as a channel's: `per_day` recipients, of which `reserve` (a part of 1) is
    never bulk's."""

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        name: str,
        per_day: PerDay,
        reserve: float = 0,
        clock: Clock = time.time,
    ) -> None:
        self._client = client
        self._table = table
        self._key = {"name": string(name)}
        self._per_day = per_day
        self._reserve = reserve
        self._clock = clock

    def ask(self, wanted: int, *, in_line: bool = False, whole: bool = False) -> Grant:
        """Take up to `wanted` recipients of bulk's part, before anything is sent; `whole`: all or none. Who
        has waited for its slot is `in_line`; others get nothing while somebody waits.

        Only `settle` gives back: a worker that dies, or a call that the SDK repeats, costs bulk a part of its
        day, and never a code. Raises Contention.
        """
        hour, oldest = hour_of(self._clock()), self._oldest()
        conditions = [_SUMS, _ROOM, _OPEN, *([] if in_line else [_NO_LINE])]
        for _ in range(_TRIES):
            day, bulk = self._limits()
            try:
                self._update(
                    _ADD.format(hour),
                    " AND ".join(conditions),
                    {
                        ":n": number(wanted),
                        ":oldest": number(oldest),
                        ":now": number(self._clock()),
                        ":bulk_most": number(bulk - wanted),
                        ":used_most": number(day - wanted),
                    },
                )
            except ConditionFailed as failed:
                if failed.item.get("oldest") != oldest:
                    oldest = self._summed(failed.item, oldest)
                    continue
                left = self._room(failed.item, in_line=in_line).recipients
                if left <= 0 or (whole and left < wanted):
                    return Grant(0, hour)
                wanted = min(wanted, left)
            else:
                return Grant(wanted, hour)
        raise Contention(f"the budget was changed by others {_TRIES} times; ask again")

    def settle(self, once: "DynamoDBClient", grant: Grant, recipients: int) -> None:
        """Count `recipients` in place of those of a grant of this hour or the last.

        `once` is a client that never repeats a call: a second write would give the same recipients back
        again, and more would be sent than the day has.
        """
        more = {":n": number(recipients - grant.recipients)}
        update(once, self._table, self._key, _ADD.format(grant.hour), "attribute_exists(#oldest)", more)

    def count(self, sent: int) -> None:
        """Count recipients of a normal lane, who were reached whatever is left. Raises Contention."""
        hour, oldest = hour_of(self._clock()), self._oldest()
        for _ in range(_TRIES):
            try:
                values = {":n": number(sent), ":oldest": number(oldest)}
                self._update(f"ADD #used :n, #used_{hour} :n", _SUMS, values)
            except ConditionFailed as failed:
                oldest = self._summed(failed.item, oldest)
            else:
                return
        raise Contention(f"the budget was changed by others {_TRIES} times; {sent} recipients not counted")

    def close(self) -> None:
        """Let bulk have nothing for an hour: the provider says that the day is used up."""
        until = {":until": number(self._clock() + CLOSED_SECONDS)}
        later = "attribute_not_exists(closed_until) OR closed_until < :until"
        try_update(self._client, self._table, self._key, "SET closed_until = :until", later, until)

    def line_up(self, sizes: Sequence[int]) -> list[float]:
        """Slots, in epoch seconds, for messages of so many recipients: behind those who wait already, and as
        fast as what was sent a day ago stops to count. Raises Contention."""
        for _ in range(_TRIES):
            found = self._read()
            slots = [*self._slots(found, sizes)]
            before = found.get("line_until")
            values = {":until": number(math.ceil(slots[-1]))}
            if before is not None:
                values[":before"] = number(before)
            condition = "attribute_not_exists(line_until)" if before is None else "line_until = :before"
            line = "SET line_until = :until"
            if try_update(self._client, self._table, self._key, line, condition, values)[0]:
                return slots
        raise Contention(f"the line was changed by others {_TRIES} times; ask again")

    def room(self, wanted: int = 1) -> Room:
        """What bulk could have now, without taking it; and when it could have `wanted`."""
        return self._room(self._read(), in_line=False, wanted=wanted)

    def part(self) -> int:
        """Bulk's part of today."""
        return self._limits()[1]

    def spent(self) -> tuple[int, int]:
        """How many recipients count now: all, and bulk's."""
        return self._sums(self._read())

    def _room(self, found: Mapping[str, Any], *, in_line: bool, wanted: int = 1) -> Room:
        now, left = self._clock(), self._left(found)
        waits_until = max(found.get("closed_until", 0), 0 if in_line else found.get("line_until", 0))
        if waits_until > now:
            return Room(0, waits_until)
        again, lacking = now, wanted - left
        for hour, freed in sorted(_counts(found, "used", self._oldest()).items()):
            if lacking > 0:
                again, lacking = float(_frees(hour)), lacking - freed
        return Room(left, again)

    def _left(self, found: Mapping[str, Any]) -> int:
        (used, of_bulk), (day, bulk) = self._sums(found), self._limits()
        return max(0, min(bulk - of_bulk, day - used))

    def _slots(self, found: Mapping[str, Any], sizes: Sequence[int]) -> Iterator[float]:
        now, opens, bulk = self._clock(), found.get("closed_until", 0), self._limits()[1]
        at: float = max(now, found.get("line_until", 0), opens)
        frees = [(_frees(hour), n) for hour, n in _counts(found, "bulk", self._oldest()).items() if n > 0]
        if (unused := self._left(found)) > 0:
            # The provider was fuller than this stage's count, or others still wait for slots that have room.
            frees.append((max(now, opens), unused))
        frees.sort()
        for size in sizes:
            left = float(size)
            # What was granted within an hour comes free at once, and its slots are spread over an hour, so
            # that nobody comes back together with all others.
            for start, freed in frees:
                begin, end = max(at, start), start + HOUR
                fits = freed * (end - begin) / HOUR
                if begin < end and left > 0:
                    at = begin + min(left, fits) * HOUR / freed
                    left = max(0.0, left - fits)
            if left > 0:  # a day later, when the slots before stop to count
                at += left * _DAY / max(1, bulk)
            yield at

    def _summed(self, found: Mapping[str, Any], oldest: int) -> int:
        """Let the sums begin at the hour `oldest`. The hour at which they then begin."""
        before = found.get("oldest")
        if before is not None and before >= oldest:
            return int(before)  # its writer's clock is ahead
        if before is None:
            expression = "SET #oldest = :oldest, #used = :zero, #bulk = :zero"
            condition = "attribute_not_exists(#oldest)"
            values: Sets = {":oldest": number(oldest), ":zero": number(0)}
        else:
            over = {kind: _counts(found, kind, 0, oldest) for kind in ("used", "bulk")}
            names = [f"#{kind}_{each}" for kind, counts in over.items() for each in counts]
            removed = f" REMOVE {', '.join(names)}" if names else ""
            expression = f"SET #oldest = :oldest, #used = #used - :used, #bulk = #bulk - :bulk{removed}"
            condition = "#oldest = :before"
            values = {":oldest": number(oldest), ":before": number(before)}
            values |= {f":{kind}": number(sum(counts.values())) for kind, counts in over.items()}
        # Where another worker was faster, the next write tells.
        try_update(self._client, self._table, self._key, expression, condition, values)
        return oldest

    def _sums(self, found: Mapping[str, Any]) -> tuple[int, int]:
        oldest = self._oldest()
        return sum(_counts(found, "used", oldest).values()), sum(_counts(found, "bulk", oldest).values())

    def _limits(self) -> tuple[int, int]:
        """The recipients of today: all, and bulk's part."""
        day = limit_of(self._per_day, self._clock())
        return day, day - math.ceil(day * self._reserve)

    def _oldest(self) -> int:
        """The oldest hour that counts."""
        return hour_of(self._clock() - _LATEST - _DAY)

    def _read(self) -> dict[str, Any]:
        reply = self._client.get_item(TableName=self._table, Key=self._key, ConsistentRead=True)
        return plain(reply.get("Item", {}))

    def _update(self, expression: str, condition: str, values: Sets) -> None:
        update(self._client, self._table, self._key, expression, condition, values)


def _counts(found: Mapping[str, Any], kind: str, oldest: int, before: float = math.inf) -> dict[int, int]:
    """The counts of one kind, by hour, of the hours from `oldest` on and before `before`."""
    counts = {}
    for name, value in found.items():
        prefix, _, hour = name.partition("_")
        if prefix == kind and hour.isdigit() and oldest <= int(hour) < before:
            counts[int(hour)] = int(value)
    return counts


def limit_of(per_day: PerDay, now: float) -> int:
    """The recipients of the day that `now` (epoch seconds) lies in."""
    today = datetime.fromtimestamp(now, UTC).date().isoformat()
    begun = [recipients for date, recipients in per_day if date <= today]
    return begun[-1] if begun else per_day[0][1]


def hour_of(now: float) -> int:
    return int(now) // HOUR


def _frees(hour: int) -> int:
    """When what was granted in an hour stops to count, in epoch seconds."""
    return (hour + 1) * HOUR + _LATEST + _DAY
