"""A campaign's schedule in words: EventBridge's cron, as far as people write it so."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
"""EventBridge counts them from 1
(https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html)."""
_NAMES = ("Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays")
_CRON = re.compile(r"(\d{1,2}) (\d{1,2}) [*?] \* ([A-Z0-9,*?-]+) (\*|\d{4})")
_LOOK_AHEAD = 8
"""Days after which a weekly schedule has come."""


def words_of(cron: str, zone: str, now: float) -> str:
    """`Mondays 09:00 Europe/Berlin, next 2026-11-30`; the cron itself, where it says more than days of the
    week and a time. `now` is in epoch seconds."""
    form = _CRON.fullmatch(cron.strip())
    days = list(_days(form[3])) if form else []
    if form is None or not days:
        return f"{cron} {zone}"
    minute, hour, year = int(form[1]), int(form[2]), form[4]
    which = "Daily" if len(days) == len(_DAYS) else ", ".join(_NAMES[day] for day in days)
    said = f"{which} {hour:02}:{minute:02} {zone}"
    here = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(zone))
    for ahead in range(_LOOK_AHEAD):
        at = (here + timedelta(ahead)).replace(hour=hour, minute=minute, second=0, microsecond=0)
        if at > here and at.isoweekday() % 7 in days and year in ("*", str(at.year)):
            return f"{said}, next {at:%Y-%m-%d}"
    return said if year == "*" else f"{said}, in {year} alone"


def _days(field: str) -> Iterator[int]:
    """The days of the week that a field names, Sunday as 0; none, where it is written otherwise."""
    if field in ("*", "?"):
        yield from range(len(_DAYS))
        return
    for part in field.split(","):
        first, _, last = part.partition("-")
        ends = [_day(first), _day(last or first)]
        if None in ends:
            return
        begin, end = (each or 0 for each in ends)
        yield from range(begin, end + 1)


def _day(text: str) -> int | None:
    if text in _DAYS:
        return _DAYS.index(text)
    return int(text) - 1 if text.isdigit() and 1 <= int(text) <= len(_DAYS) else None
