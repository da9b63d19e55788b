"""Times, spans of time and speeds, as operators write them and as they read them."""

import re
from datetime import datetime

from mailroom_ops.shared.screen import Refused

_SPAN = re.compile(r"([0-9]{1,6})([smhdw])", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LARGE = (("days", 86_400), ("hours", 3_600), ("minutes", 60))
_PARTS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def span_of(text: str) -> int | None:
    """Return a span such as `15m` in seconds, or None if the text is not a span."""
    form = _SPAN.fullmatch(text.strip())
    return int(form[1]) * _UNITS[form[2]] if form else None


def seconds_of(text: str) -> int:
    """`15m` in seconds. Raises Refused if it is no span."""
    found = span_of(text)
    if found is None:
        raise Refused(f"{text!r:.40} is no span of time; use one like 90s, 15m, 2h, 1d or 2w.")
    return found


def written(seconds: float) -> str:
    """A span as one types it: in the largest unit, of days at most, that leaves no fraction."""
    whole = round(seconds)
    for unit in ("d", "h", "m"):
        if whole and whole % _UNITS[unit] == 0:
            return f"{whole // _UNITS[unit]}{unit}"
    return f"{whole}s"


def duration(seconds: float) -> str:
    """About how long, in its largest unit: `3 hours`."""
    for unit, length in _LARGE:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} seconds"


def exactly(seconds: float) -> str:
    """`3 h 58 min (14,286 s)`: the two largest units, and the seconds if they are not among these."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    left = round(seconds)
    counts = []
    for unit, length in _PARTS:
        count, left = divmod(left, length)
        counts.append((count, unit))
    while not counts[0][0]:
        counts.pop(0)
    words = " ".join(f"{count} {unit}" for count, unit in counts[:2] if count)
    return f"{words} ({seconds:,.0f} s)"


def short(time: str | None) -> str:
    """An ISO 8601 time in UTC for a person: seconds are enough."""
    if not time:
        return "an unknown time"
    return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M:%S} UTC"


def ago(time: str, now: str) -> str:
    """How long ago an ISO 8601 time is, for a list: `5 min ago`; a day or more ago, the date."""
    seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(time)).total_seconds()
    if seconds < 0 or seconds >= 86_400:
        return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M}"
    if seconds < 60:
        return "just now"
    return f"{seconds / 60:.0f} min ago" if seconds < 3_600 else f"{seconds / 3_600:.0f} h ago"


def speed_of(speed: float) -> str:
    """Messages a second, with no more digits than mean something."""
    return f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"
