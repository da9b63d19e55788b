"""Windows: the hours in which a message may be sent, in the time zone of its recipient."""

import re
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from mailroom.errors import Invalid

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""Names of the days, in the order of `datetime.weekday`."""
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII)
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}", re.ASCII)
_MINUTE = 60
_LONGEST = 15 * 24 * 60
"""Maximum number of minutes until a window opens. A weekly window may lie in the hour that clocks skip in
spring, and then two weeks pass between two openings."""


class Window(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Hours of the day in which a message may be sent, from `from` until before `to`. If `to` is earlier than
    `from`, the window ends on the next day, and the hours after midnight belong to the day on which it began.
    Local time decides, so an hour that clocks repeat in autumn is in the window both times."""

    from_: Annotated[str, Meta(description="HH:MM")] = field(name="from")
    to: Annotated[str, Meta(description="HH:MM, exclusive")]
    days: Annotated[str, Meta(description="like mon-sat, or mon,wed,fri")] = "mon-sun"
    zone: Annotated[
        str | None, Meta(description="like Europe/Berlin; the message's time_zone overrides it")
    ] = None

    def check(self, zone: str | None) -> None:
        """Raise Invalid for an invalid field of the window. `zone` is the `time_zone` of the message."""
        for name, text in (("from", self.from_), ("to", self.to)):
            if not _CLOCK.fullmatch(text):
                raise Invalid(f"window.{name}", f"{text!r:.60} is not a time of day; use one like 09:00")
        if self.from_ == self.to:
            raise Invalid("window.to", "is the same as from; leave the window out to send at any time")
        days_of(self.days)
        if zone is None and self.zone is None:
            raise Invalid("window.zone", "is missing; use a time zone like Europe/Berlin, or set time_zone")
        self.clock_of(zone)

    def clock_of(self, zone: str | None) -> "ZoneInfo":
        """Return the time zone `zone` of the message or, if it is None, of the window. Raises Invalid."""
        return zone_of("window.zone" if zone is None else "time_zone", zone or self.zone or "")

    def opens(self, timestamp: float, zone: str | None) -> float:
        """Return the first time from `timestamp` on at which the window is open, both in epoch seconds.
        `zone` is the `time_zone` of the message. Raises Invalid for an unknown `zone`."""
        if _within(self, zone, timestamp):
            return timestamp
        return _next(self, zone, int(timestamp) // _MINUTE + 1)


@lru_cache(maxsize=2048)  # the result is the same for all messages that wait in the same minute
def _next(window: Window, zone: str | None, first: int) -> float:
    for minute in range(first, first + _LONGEST):
        if _within(window, zone, minute * _MINUTE):
            return float(minute * _MINUTE)
    raise Invalid("window", "is never open")


def _within(window: Window, zone: str | None, timestamp: float) -> bool:
    moment = datetime.fromtimestamp(timestamp, window.clock_of(zone))
    clock, days, today = f"{moment:%H:%M}", days_of(window.days), moment.weekday()
    if window.from_ < window.to:
        return today in days and window.from_ <= clock < window.to
    return (today in days and clock >= window.from_) or ((today - 1) % 7 in days and clock < window.to)


@lru_cache(maxsize=256)
def days_of(text: str) -> frozenset[int]:
    """Return the days of the week in a text such as `mon-sat`, as numbers with Monday as 0. Raises
    Invalid."""
    days: set[int] = set()
    for part in text.split(",")[:8]:
        first, dash, last = part.strip().lower().partition("-")
        if first not in DAYS or (dash and last not in DAYS):
            raise Invalid("window.days", f"{text!r:.60} are not days; use mon-sat, or mon,wed,fri")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        days |= {day % 7 for day in range(begin, end + 1 + (7 if end < begin else 0))}
    return frozenset(days)


@lru_cache(maxsize=512)
def zone_of(name: str, zone: str) -> "ZoneInfo":
    """Return a time zone of the IANA database. Raises Invalid for the attribute `name` if the zone is
    unknown."""
    # Imported here, because few messages have a window, and every function imports this module.
    from zoneinfo import ZoneInfo

    # The name is checked first: `ZoneInfo` opens a file of that name, and the folder also has files that are
    # not zones of IANA.
    if not _ZONE.fullmatch(zone) or zone.startswith(("posix", "right/", "localtime")):
        raise Invalid(name, f"{zone!r:.60} is not a time zone; use one like Europe/Berlin")
    try:
        return ZoneInfo(zone)
    except (OSError, ValueError, KeyError):  # the name of a folder or of another file, or an unknown name
        raise Invalid(name, f"{zone!r:.60} is not a time zone; use one like Europe/Berlin") from None
