"""The hours in which a message may go out, by the clock of its recipient."""

import re
from datetime import datetime
from functools import lru_cache
from typing import Annotated
from zoneinfo import ZoneInfo

from msgspec import Meta, Struct, field

from mailroom.errors import Invalid

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII)
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}", re.ASCII)
_MINUTE = 60
_LONGEST = 15 * 24 * 60
"""Minutes: a window of one day in the week may lie in the hour that the clock skips there once a year."""


class Window(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """From and to are times of day; `to` may be after midnight, and then belongs to the day before. A moment
    is within by what the clock on the wall shows then, so an hour that comes twice is within twice."""

    from_: Annotated[str, Meta(description="HH:MM")] = field(name="from")
    to: Annotated[str, Meta(description="HH:MM, not within any more")]
    days: Annotated[str, Meta(description="like mon-sat, or mon,wed,fri")] = "mon-sun"
    zone: Annotated[
        str | None, Meta(description="like Europe/Berlin; the message's time_zone goes before")
    ] = None

    def check(self, zone: str | None) -> None:
        """Raise Invalid, by the field of `window` at fault. `zone` is the message's own."""
        for name, text in (("from", self.from_), ("to", self.to)):
            if not _CLOCK.fullmatch(text):
                raise Invalid(f"window.{name}", f"{text!r:.60} is no time of day; use one like 09:00")
        if self.from_ == self.to:
            raise Invalid("window.to", "is the same as from; leave the window out to send at any time")
        days_of(self.days)
        if zone is None and self.zone is None:
            raise Invalid("window.zone", "is missing; name a time zone like Europe/Berlin, or give time_zone")
        self.clock_of(zone)

    def clock_of(self, zone: str | None) -> ZoneInfo:
        """The zone by whose clock it is. Raises Invalid."""
        return zone_of("window.zone" if zone is None else "time_zone", zone or self.zone or "")

    def opens(self, at: float, zone: str | None) -> float:
        """The first moment within, from `at` on (epoch seconds). The window was checked. Raises Invalid for a
        `zone` that there is not."""
        if _within(self, zone, at):
            return at
        return _next(self, zone, int(at) // _MINUTE + 1)


@lru_cache(maxsize=2048)  # whatever waits at the same minute opens at the same
def _next(window: Window, zone: str | None, minute: int) -> float:
    for later in range(minute, minute + _LONGEST):
        if _within(window, zone, later * _MINUTE):
            return float(later * _MINUTE)
    raise Invalid("window", "is never open")


def _within(window: Window, zone: str | None, at: float) -> bool:
    moment = datetime.fromtimestamp(at, window.clock_of(zone))
    clock, days, today = f"{moment:%H:%M}", days_of(window.days), moment.weekday()
    if window.from_ < window.to:
        return today in days and window.from_ <= clock < window.to
    return (today in days and clock >= window.from_) or ((today - 1) % 7 in days and clock < window.to)


@lru_cache(maxsize=256)
def days_of(text: str) -> frozenset[int]:
    """The days of the week that a text names, Monday as 0. Raises Invalid."""
    found: set[int] = set()
    for part in text.split(",")[:8]:
        first, dash, last = part.strip().lower().partition("-")
        if first not in DAYS or (dash and last not in DAYS):
            raise Invalid("window.days", f"{text!r:.60} are no days; write mon-sat, or mon,wed,fri")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        found |= {each % 7 for each in range(begin, end + 1 + (7 if end < begin else 0))}
    return frozenset(found)


@lru_cache(maxsize=512)
def zone_of(name: str, zone: str) -> ZoneInfo:
    """A time zone of IANA's. Raises Invalid by the field `name`."""
    # A key is a path below the zones' folder.
    if not _ZONE.fullmatch(zone) or zone.startswith(("posix", "right/", "localtime")):
        raise Invalid(name, f"{zone!r:.60} is no time zone; use one like Europe/Berlin")
    try:
        return ZoneInfo(zone)
    except (OSError, ValueError, KeyError):  # a folder, a file that is no zone, or none
        raise Invalid(name, f"{zone!r:.60} is no time zone; use one like Europe/Berlin") from None
