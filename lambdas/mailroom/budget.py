"""Daily budget: counts how many recipients may be reached in 24 hours, in one DynamoDB item with conditional
writes.

A provider's quota is for any 24 hours, as in SES
(https://docs.aws.amazon.com/ses/latest/dg/manage-sending-quotas.html). So the item has two counts for each
hour (in hours since 1970): `used_<hour>` of all recipients and `bulk_<hour>` of recipients of bulk messages.
`used` and `bulk` are the sums of these counts from the hour `oldest` on. The recipients that were granted in
an hour count until all of them were reached more than 24 hours ago.

The bulk lane reserves recipients by a grant before it sends. Grants leave the fraction `reserve` of the day's
limit to other messages. Normal lanes count their recipients after sending, so that an urgent message, such as
a login code, does not wait for this item.
"""

import math
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from mailroom.aws.dynamo_updates import ConditionFailed, try_update, update
from mailroom.aws.dynamo_values import Sets, number, plain, string
from mailroom.clock import Clock, epoch
from mailroom.errors import Contention

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

PerDay = Sequence[tuple[str, int]]
"""Maximum numbers of recipients a day, each with the date (ISO, UTC) from which it is valid. The first is
also valid before its date. An empty sequence means that the number is not limited."""
HOUR = 3600
_DAY = 86_400
_LATEST = 900
"""Seconds after which a grant is not used any more, because a Lambda function runs 900 seconds at most."""
CLOSED_SECONDS = HOUR
"""Seconds for which the bulk lane gets no grants after the provider has refused a message because the
channel's daily quota is used up."""
_TRIES = 25
"""Maximum number of tries of a write. A try fails if another worker has written meanwhile, or if sums or
the grant must be adjusted first."""

_ADD = "ADD #used :n, #bulk :n, #used_{0} :n, #bulk_{0} :n"
_SUMS = "#oldest = :oldest"
_OPEN = "(attribute_not_exists(closed_until) OR closed_until <= :now)"
_TURN = "(attribute_not_exists(line_at) OR line_at >= :place)"
"""Condition: no message that was put earlier waits for the budget."""
_ROOM = "#bulk <= :bulk_most AND #used <= :used_most"


class Grant(NamedTuple):
    """Recipients that the bulk lane may reach now."""

    recipients: int
    hour: int
    """Hour in which the recipients are counted, in hours since 1970."""
    line_at: float = math.inf
    """Time in epoch seconds: a message that was put later must wait, because earlier messages wait
    already."""


class Room(NamedTuple):
    """Remaining capacity of the budget for bulk messages."""

    recipients: int
    again: float
    """Time in epoch seconds from which the number of recipients that the caller needs would be available."""


class Line(NamedTuple):
    """State of the line, which consists of the messages that wait for the budget."""

    recipients: int
    """Number of recipients that bulk messages may have now."""
    at: float
    """Time in epoch seconds: messages that were put later have to wait. Infinity if no messages wait."""
    joined: int
    """Number of times that messages have joined the line."""


class Budget:
    """Daily budget of a channel, or of a caller of the API: at most `per_day` recipients. The fraction
    `reserve` of them is never granted to bulk messages."""

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

    def ask(self, recipients: int, place: float = 0, *, whole: bool = False) -> Grant:
        """Reserve up to `recipients` for bulk messages before they are sent, and return the grant. With
        `whole`, all of them are reserved or none.

        `place` is the latest time (epoch seconds) at which one of the messages was put. If messages that were
        put earlier wait, the grant is empty.

        Only `settle` returns unused recipients. If a worker crashes, or the SDK repeats the call, fewer bulk
        messages can be sent that day, but other messages are not affected. Raises Contention.
        """
        hour, oldest = hour_of(self._clock()), self._oldest()
        condition = f"{_SUMS} AND {_ROOM} AND {_OPEN} AND {_TURN}"
        for _ in range(_TRIES):
            day, bulk = self._limits()
            try:
                self._update(
                    _ADD.format(hour),
                    condition,
                    {
                        ":n": number(recipients),
                        ":oldest": number(oldest),
                        ":now": number(self._clock()),
                        ":place": number(int(place)),
                        ":bulk_most": number(bulk - recipients),
                        ":used_most": number(day - recipients),
                    },
                )
            except ConditionFailed as failed:
                if failed.item.get("oldest") != oldest:
                    oldest = self._summed(failed.item, oldest)
                    continue
                line_at = float(failed.item.get("line_at", math.inf))
                free = self._open_room(failed.item)
                if line_at < int(place) or free <= 0 or (whole and free < recipients):
                    return Grant(0, hour, line_at)
                recipients = min(recipients, free)
            else:
                return Grant(recipients, hour)
        raise Contention(f"other workers changed the budget at each of {_TRIES} tries; try again")

    def settle(self, client: "DynamoDBClient", grant: Grant, recipients: int) -> None:
        """Replace the number of recipients of a grant, made in this hour or the hour before, by the number
        `recipients` that was used.

        The client must not retry: a second write would return the same recipients again, and more would be
        reached than the budget allows.
        """
        values = {":n": number(recipients - grant.recipients)}
        update(client, self._table, self._key, _ADD.format(grant.hour), "attribute_exists(#oldest)", values)

    def count(self, sent: int, *, bulk: bool = False) -> None:
        """Count recipients who were reached without a grant, by a normal lane or by the `bulk` lane. Raises
        Contention."""
        hour, oldest = hour_of(self._clock()), self._oldest()
        addition = _ADD.format(hour) if bulk else f"ADD #used :n, #used_{hour} :n"
        for _ in range(_TRIES):
            try:
                values = {":n": number(sent), ":oldest": number(oldest)}
                self._update(addition, _SUMS, values)
            except ConditionFailed as failed:
                oldest = self._summed(failed.item, oldest)
            else:
                return
        raise Contention(
            f"others changed the budget at each of {_TRIES} tries; {sent} recipients not counted"
        )

    def close(self) -> None:
        """Grant no recipients to the bulk lane for an hour, because the provider has refused a message: the
        channel's daily quota is used up. Messages of normal lanes are retried earlier. If they are refused
        again, the hour begins anew."""
        until = {":until": number(self._clock() + CLOSED_SECONDS)}
        later = "attribute_not_exists(closed_until) OR closed_until < :until"
        try_update(self._client, self._table, self._key, "SET closed_until = :until", later, until)

    def join(self, place: float) -> None:
        """Record that a message waits which was put at `place` (epoch seconds): messages that were put at the
        same time or later have to wait. If other messages wait already, only `joined` changes."""
        values = {":before": number(int(place) - 1), ":one": number(1)}
        expression = "SET line_at = if_not_exists(line_at, :before) ADD joined :one"
        self._client.update_item(
            TableName=self._table,
            Key=self._key,
            UpdateExpression=expression,
            ExpressionAttributeValues=values,
        )

    def line(self) -> Line:
        """Return the state of the line and the present capacity, by a consistent read."""
        item = self._read()
        line_at = float(item.get("line_at", math.inf))
        return Line(self._open_room(item), line_at, int(item.get("joined", 0)))

    def move_line(self, place: float) -> None:
        """Allow grants for messages that were put at `place` (epoch seconds) or before."""
        values = {":place": number(int(place))}
        self._client.update_item(
            TableName=self._table,
            Key=self._key,
            UpdateExpression="SET line_at = :place",
            ExpressionAttributeValues=values,
        )

    def close_line(self, joined: int) -> bool:
        """Record that no message waits any more. Returns False if a message has joined the line since
        `joined` was read."""
        condition = "attribute_not_exists(joined) OR joined = :joined"
        values = {":joined": number(joined)}
        return try_update(self._client, self._table, self._key, "REMOVE line_at", condition, values)[0]

    def room(self, recipients: int = 1) -> Room:
        """Return the number of recipients that could be granted to bulk messages now, without reserving them,
        and the time at which `recipients` could be granted."""
        return self.room_in(self._read(), recipients)

    def part(self) -> int:
        """Return today's maximum number of recipients of bulk messages."""
        return self._limits()[1]

    def largest_part(self) -> int:
        """Return the largest daily maximum for bulk messages, of today or a later date in `per_day`. A
        message with more recipients never fits."""
        moment = self._clock()
        begins = (epoch(date) for date, _ in self._per_day)
        times = (moment, *(begin for begin in begins if begin > moment))
        return max(limits_of(self._per_day, self._reserve, time_)[1] for time_ in times)

    def spent(self) -> tuple[int, int]:
        """Return the numbers of recipients that are counted now: of all messages, and of bulk messages."""
        return self._sums(self._read())

    def room_in(self, item: Mapping[str, Any], recipients: int = 1) -> Room:
        """Return the result of `room` for the budget's item in plain Python, which the caller has read."""
        moment, free = self._clock(), self._left(item)
        if (closed_until := item.get("closed_until", 0)) > moment:
            return Room(0, closed_until)
        again, missing = moment, recipients - free
        for hour, freed in sorted(_counts(item, "used", self._oldest()).items()):
            if missing > 0:
                again, missing = float(frees(hour)), missing - freed
        return Room(0 if "line_at" in item else free, again)

    def _open_room(self, item: Mapping[str, Any]) -> int:
        """Return the capacity for bulk messages, ignoring messages that wait. It is 0 after `close`."""
        return 0 if item.get("closed_until", 0) > self._clock() else self._left(item)

    def _left(self, item: Mapping[str, Any]) -> int:
        used, of_bulk = _counts(item, "used", 0), _counts(item, "bulk", 0)
        return room_left(used, of_bulk, self._per_day, self._reserve, self._clock())

    def _summed(self, item: Mapping[str, Any], oldest: int) -> int:
        """Remove the hours before `oldest` from the sums. Returns the hour at which the sums begin."""
        before = item.get("oldest")
        if before is not None and before >= oldest:
            return int(before)  # the worker that moved the sums has a clock that is ahead
        if before is None:
            expression = "SET #oldest = :oldest, #used = :zero, #bulk = :zero"
            condition = "attribute_not_exists(#oldest)"
            values: Sets = {":oldest": number(oldest), ":zero": number(0)}
        else:
            over = {kind: _counts(item, kind, 0, oldest) for kind in ("used", "bulk")}
            names = [f"#{kind}_{hour}" for kind, counts in over.items() for hour in counts]
            removed = f" REMOVE {', '.join(names)}" if names else ""
            expression = f"SET #oldest = :oldest, #used = #used - :used, #bulk = #bulk - :bulk{removed}"
            condition = "#oldest = :before"
            values = {":oldest": number(oldest), ":before": number(before)}
            values |= {f":{kind}": number(sum(counts.values())) for kind, counts in over.items()}
        # If another worker was faster, this write changes nothing. Then the caller's next write fails, and
        # reads that worker's hour.
        try_update(self._client, self._table, self._key, expression, condition, values)
        return oldest

    def _sums(self, item: Mapping[str, Any]) -> tuple[int, int]:
        oldest = self._oldest()
        return sum(_counts(item, "used", oldest).values()), sum(_counts(item, "bulk", oldest).values())

    def _limits(self) -> tuple[int, int]:
        """Return today's maximum numbers of recipients: of all messages, and of bulk messages."""
        return limits_of(self._per_day, self._reserve, self._clock())

    def _oldest(self) -> int:
        return oldest_hour(self._clock())

    def _read(self) -> dict[str, Any]:
        reply = self._client.get_item(TableName=self._table, Key=self._key, ConsistentRead=True)
        return plain(reply.get("Item", {}))

    def _update(self, expression: str, condition: str, values: Sets) -> None:
        update(self._client, self._table, self._key, expression, condition, values)


def _counts(item: Mapping[str, Any], kind: str, oldest: int, before: float = math.inf) -> dict[int, int]:
    """Return the counts of a kind by hour, for the hours from `oldest` on and before `before`."""
    counts = {}
    for name, value in item.items():
        prefix, _, hour = name.partition("_")
        if prefix == kind and hour.isdigit() and oldest <= int(hour) < before:
            counts[int(hour)] = int(value)
    return counts


def limit_of(per_day: PerDay, moment: float) -> int:
    """Return the maximum number of recipients on the day of `moment` (epoch seconds)."""
    today = datetime.fromtimestamp(moment, UTC).date().isoformat()
    past = [recipients for date, recipients in per_day if date <= today]
    return past[-1] if past else per_day[0][1]


def limits_of(per_day: PerDay, reserve: float, moment: float) -> tuple[int, int]:
    """Return the maximum numbers of recipients on the day of `moment` (epoch seconds): of all messages, and
    of bulk messages."""
    day = limit_of(per_day, moment)
    return day, day - math.ceil(day * reserve)


def room_left(
    used: Mapping[int, int], of_bulk: Mapping[int, int], per_day: PerDay, reserve: float, moment: float
) -> int:
    """Return the number of recipients that bulk messages may have at `moment` (epoch seconds). `used` and
    `of_bulk` are the counts by hour of all recipients and of the recipients of bulk messages."""
    oldest, (day, part) = oldest_hour(moment), limits_of(per_day, reserve, moment)
    total, bulk = (sum(n for hour, n in counts.items() if hour >= oldest) for counts in (used, of_bulk))
    return max(0, min(part - bulk, day - total))


def hour_of(moment: float) -> int:
    return int(moment) // HOUR


def oldest_hour(moment: float) -> int:
    """Return the oldest hour whose recipients are counted at `moment` (epoch seconds)."""
    return hour_of(moment - _LATEST - _DAY)


def frees(hour: int) -> int:
    """Return the time in epoch seconds from which the recipients of an hour are not counted any more."""
    return (hour + 1) * HOUR + _LATEST + _DAY
