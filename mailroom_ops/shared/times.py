"""Parses times and time spans that operators type, and formats times, spans and speeds for people."""

import re
from datetime import datetime

from mailroom.errors import quantity
from mailroom_ops.shared.refusals import Refused

_SPAN = re.compile(r"([0-9]{1,6})([smhdw])", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LARGE = (("days", 86_400), ("hours", 3_600), ("minutes", 60))
_PARTS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def span_of(text: str) -> int | None:
    """Parse a span such as `15m`. Return it in seconds, or None if the text is not a span."""
    form = _SPAN.fullmatch(text.strip())
    return int(form[1]) * _UNITS[form[2]] if form else None


def seconds_of(text: str) -> int:
    """Parse a span such as `15m`, and return it in seconds. Raises Refused if the text is not a span."""
    seconds = span_of(text)
    if seconds is None:
        raise Refused(f"{text!r:.40} is not a time span; use one like 90s, 15m, 2h, 1d or 2w.")
    return seconds


def duration(seconds: float) -> str:
    """Format an approximate span in its largest unit, such as `3 hours`."""
    for unit, length in _LARGE:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return quantity(round(max(0.0, seconds)), "second")


def exactly(seconds: float) -> str:
    """Format a span of a minute or more in its two largest units, such as `3 h 58 min`; a shorter span in
    seconds."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    remainder = round(seconds)
    counts = []
    for unit, length in _PARTS:
        count, remainder = divmod(remainder, length)
        counts.append((count, unit))
    while not counts[0][0]:
        counts.pop(0)
    return " ".join(f"{count} {unit}" for count, unit in counts[:2] if count)


def short(time: str | None) -> str:
    """Format an ISO 8601 time in UTC to the second."""
    if not time:
        return "an unknown time"
    return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M:%S} UTC"


def clock(time: str) -> str:
    """Format an ISO 8601 time in UTC for the rows of a list, such as `Nov 30, 21:49:18`."""
    return f"{datetime.fromisoformat(time):%b %d, %H:%M:%S}"


def speed_of(speed: float) -> str:
    """Format a number of messages a second with three significant digits, or without decimals from 100 on."""
    return f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"
