"""On which days a number of messages goes out, where a day has a limit: docs/budget.md."""

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct
from rich.table import Table

from mailroom.budget import PerDay, limit_of
from mailroom.clock import iso
from mailroom_ops.screen import right, table_of
from mailroom_ops.times import short

SHOWN_DAYS = 10
NEXT_DAY_SECONDS = 25.25 * 3600
"""What was granted counts for at most as long: until then a day's part is used up."""


class DayShare(Struct, frozen=True):
    """The messages of one day, from when on they go out (ISO 8601), and how many recipients codes may reach
    then in 24 hours, at the worst moment."""

    begins: str
    messages: int
    left_for_codes: int


def days(
    messages: int, per_day: PerDay, reserve: float, now: float, room: int | None = None
) -> Iterator[DayShare]:
    """The days of bulk messages of one recipient each, the first now (epoch seconds). `room` is what is left
    of today's part; None: all of it."""
    at, left = now, messages
    while left > 0:
        limit = limit_of(per_day, at)
        kept = math.ceil(limit * reserve)
        share = min(left, limit - kept if room is None else room)
        if share > 0:
            yield DayShare(iso(at), share, kept)
        left, room, at = left - share, None, at + NEXT_DAY_SECONDS


def days_table(shares: Sequence[DayShare]) -> Table:
    table = table_of("from", right("messages"), right("left for codes"))
    for each in shares[:SHOWN_DAYS]:
        table.add_row(short(each.begins), f"{each.messages:,}", f"{each.left_for_codes:,}")
    if more := shares[SHOWN_DAYS:]:
        table.add_row(f"and {len(more):,} more days", f"{sum(each.messages for each in more):,}", "")
    return table
