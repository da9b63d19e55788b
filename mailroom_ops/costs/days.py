"""The days on which bulk messages are sent if a channel has a daily limit: `mailroom docs
keep-codes-fast`."""

from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from mailroom.budget import PerDay, frees, hour_of, limits_of, oldest_hour, room_left
from mailroom.clock import iso

_DAY = 86_400


class DayShare(Struct, frozen=True):
    """Messages that are sent within one day."""

    begins: str
    """Time of the first message (ISO 8601)."""
    messages: int
    left_for_codes: int
    """Number of recipients in 24 hours that bulk messages leave for the lane normal, such as for codes."""


class Portion(Struct, frozen=True):
    """Messages that are queued at the same time."""

    begins: float
    """Time in epoch seconds."""
    messages: int


def portions(
    messages: int,
    per_day: PerDay,
    reserve: float,
    start: float,
    *,
    room: int | None = None,
) -> Iterator[Portion]:
    """Yield bulk messages to one recipient each, in portions, as the function `release` queues them.

    `room` is the number of recipients that bulk messages may still reach at `start` (epoch seconds); the
    default is their whole part of the daily limit.
    """
    part = limits_of(per_day, reserve, start)[1]
    counts = {hour_of(start): part - room} if room is not None else {}
    time = start
    while messages > 0:
        if free := room_left(counts, counts, per_day, reserve, time):
            share = min(free, messages)
            yield Portion(time, share)
            counts[hour_of(time)] = counts.get(hour_of(time), 0) + share
            messages -= share
        else:
            # There is capacity again when the oldest hour no longer counts, or at the next date, which may
            # have another limit.
            counts = {hour: count for hour, count in counts.items() if hour >= oldest_hour(time)}
            time = min([time - time % _DAY + _DAY, *(frees(hour) for hour in counts)])


def days(portions: Iterable[Portion], per_day: PerDay, reserve: float) -> list[DayShare]:
    """Add up portions to days of 24 hours each. If the daily limit changes, a new day begins."""
    shares: list[DayShare] = []
    begins = limit = 0.0
    for portion in portions:
        day, part = limits_of(per_day, reserve, portion.begins)
        if portion.begins >= begins + _DAY or day != limit:
            begins, limit = portion.begins, day
            shares.append(DayShare(iso(begins), 0, day - part))
        shares[-1] = structs.replace(shares[-1], messages=shares[-1].messages + portion.messages)
    return shares
