"""On which days a number of messages goes out, if a day has a limit: docs/budget.md."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, structs
from rich.table import Table

from mailroom.budget import HOUR, PerDay, frees, hour_of, limits_of, oldest_hour, room_left
from mailroom.clock import iso
from mailroom_ops.screen import right, table_of
from mailroom_ops.times import short

SHOWN_DAYS = 10
_DAY = 86_400


class DayShare(Struct, frozen=True):
    """The messages of one day, from when on they go out (ISO 8601), and how many recipients codes may reach
    then in 24 hours, at the worst moment."""

    begins: str
    messages: int
    left_for_codes: int


class Portion(Struct, frozen=True):
    """Messages that go out one after another, within an hour."""

    begins: float
    """Time in epoch seconds."""
    messages: int


def portions(
    messages: int,
    per_day: PerDay,
    reserve: float,
    now: float,
    *,
    room: int | None = None,
    speed: float = float("inf"),
) -> Iterator[Portion]:
    """Return how bulk messages of one recipient each go out, by the rule by which `release` hands them over.

    `room` is what is left of today's part at `now` (epoch seconds); None: all of it. `speed` is in messages a
    second.
    """
    part = limits_of(per_day, reserve, now)[1]
    counts = {hour_of(now): part - room} if room is not None else {}
    at, left = now, messages
    while left > 0:
        if free := room_left(counts, counts, per_day, reserve, at):
            hour = hour_of(at)
            share = int(min(free, left, max(1, ((hour + 1) * HOUR - at) * speed)))
            yield Portion(at, share)
            counts[hour] = counts.get(hour, 0) + share
            at, left = at + share / speed, left - share
        else:
            # More comes free as an old hour stops to count, or with another limit of the next date.
            counts = {hour: count for hour, count in counts.items() if hour >= oldest_hour(at)}
            at = min([at - at % _DAY + _DAY, *(frees(hour) for hour in counts)])


def days(portions: Iterable[Portion], per_day: PerDay, reserve: float) -> list[DayShare]:
    """Return what goes out in 24 hours each; another limit begins another day."""
    shares: list[DayShare] = []
    begins = limit = 0.0
    for portion in portions:
        day, part = limits_of(per_day, reserve, portion.begins)
        if portion.begins >= begins + _DAY or day != limit:
            begins, limit = portion.begins, day
            shares.append(DayShare(iso(begins), 0, day - part))
        shares[-1] = structs.replace(shares[-1], messages=shares[-1].messages + portion.messages)
    return shares


def days_table(shares: Sequence[DayShare]) -> Table:
    table = table_of("from", right("messages"), right("left for codes"))
    for each in shares[:SHOWN_DAYS]:
        table.add_row(short(each.begins), f"{each.messages:,}", f"{each.left_for_codes:,}")
    if more := shares[SHOWN_DAYS:]:
        table.add_row(f"and {len(more):,} more days", f"{sum(each.messages for each in more):,}", "")
    return table
