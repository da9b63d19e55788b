"""The hours in which a message may go out, compared with the wall clock of a zone."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailroom.errors import Invalid
from mailroom.message.window import DAYS, Window

BERLIN, WORK = "Europe/Berlin", {"from": "09:00", "to": "20:00", "days": "mon-sat", "zone": "Europe/Berlin"}


def window(**changes: Any) -> Window:
    return msgspec.convert({**WORK, **changes}, Window)


def epoch_of(text: str, zone: str = BERLIN, fold: int = 0) -> float:
    """Return a wall-clock time of a zone in epoch seconds."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def on_the_wall(seconds: float, zone: str = BERLIN) -> str:
    return f"{datetime.fromtimestamp(seconds, ZoneInfo(zone)):%Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("moment", "opens"),
    [
        ("2026-11-25 12:00", "2026-11-25 12:00"),
        ("2026-11-25 08:59", "2026-11-25 09:00"),
        ("2026-11-25 09:00", "2026-11-25 09:00"),
        ("2026-11-25 20:00", "2026-11-26 09:00"),
        ("2026-11-28 20:30", "2026-11-30 09:00"),  # a Saturday evening
        ("2026-11-29 12:00", "2026-11-30 09:00"),
    ],
)
def test_a_message_outside_its_time_window_waits_until_the_window_opens_next(moment: str, opens: str) -> None:
    assert on_the_wall(window().opens(epoch_of(moment), None)) == opens


@pytest.mark.parametrize(
    ("moment", "opens"),
    [
        ("2026-11-27 23:00", "2026-11-27 23:00"),  # a Friday
        ("2026-11-28 05:59", "2026-11-28 05:59"),  # within the window of Friday
        ("2026-11-28 06:00", "2026-12-04 22:00"),
        ("2026-11-28 23:00", "2026-12-04 22:00"),
    ],
)
def test_a_time_window_over_midnight_belongs_to_the_day_on_which_it_begins(moment: str, opens: str) -> None:
    night = window(**{"from": "22:00", "to": "06:00", "days": "fri"})
    assert on_the_wall(night.opens(epoch_of(moment), None)) == opens


def test_the_time_zone_of_a_message_overrides_the_zone_of_its_window() -> None:
    morning = epoch_of("2026-11-25 08:00", "America/New_York")
    assert window().opens(morning, None) == morning
    assert on_the_wall(window().opens(morning, "America/New_York"), "America/New_York") == "2026-11-25 09:00"


@pytest.mark.parametrize(("to", "opens"), [("05:00", "2027-03-28 03:00"), ("02:50", "2027-04-04 02:30")])
def test_a_window_opens_after_the_hour_skipped_in_spring_unless_the_window_is_within_that_hour(
    to: str, opens: str
) -> None:
    sunday = window(**{"from": "02:30", "to": to, "days": "sun"})
    assert on_the_wall(sunday.opens(epoch_of("2027-03-28 01:59"), None)) == opens


def test_a_time_window_within_the_hour_repeated_in_autumn_opens_twice() -> None:
    night = window(**{"from": "02:00", "to": "02:30", "days": "mon-sun"})
    between = epoch_of("2026-10-25 02:40")
    assert night.opens(between, None) == epoch_of("2026-10-25 02:00", fold=1)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"from": "9:00"}, "window.from"),
        ({"from": "24:00"}, "window.from"),
        ({"to": "20:60"}, "window.to"),
        ({"to": "09:00"}, "window.to"),
        ({"days": "monday"}, "window.days"),
        ({"days": ""}, "window.days"),
        ({"days": "mon-"}, "window.days"),
        ({"zone": "Berlin"}, "window.zone"),
        ({"zone": "../../etc/passwd"}, "window.zone"),
        ({"zone": "Europe"}, "window.zone"),
        ({"zone": "posixrules"}, "window.zone"),
        ({"zone": None}, "window.zone"),
    ],
)
def test_an_invalid_time_window_is_refused_with_the_name_of_the_invalid_field(
    changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as raised:
        window(**changes).check(None)
    assert raised.value.field == field


def test_an_invalid_time_zone_of_a_message_is_refused_with_an_example() -> None:
    window(zone=None).check("Asia/Kolkata")
    with pytest.raises(Invalid) as raised:
        window().check("Kolkata")
    assert (raised.value.field, str(raised.value)) == (
        "time_zone",
        "time_zone: 'Kolkata' is not a time zone; use one like Europe/Berlin",
    )


CLOCKS = st.builds("{:02d}:{:02d}".format, st.integers(0, 23), st.sampled_from([0, 10, 30, 45]))
ZONES = st.sampled_from(
    ["UTC", BERLIN, "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns"]
)
# Days around the year's two changes of the clock.
MOMENTS = st.datetimes(datetime(2026, 10, 20), datetime(2026, 11, 5)) | st.datetimes(
    datetime(2027, 3, 10), datetime(2027, 4, 8)
)


@given(MOMENTS, CLOCKS, CLOCKS, st.sets(st.sampled_from(DAYS), min_size=1), ZONES)
@settings(max_examples=60, deadline=None)
def test_a_time_window_opens_at_the_first_minute_of_local_time_that_is_inside_the_window(
    moment: datetime, begin: str, end: str, days: set[str], zone: str
) -> None:
    if begin == end:
        return
    hours = window(**{"from": begin, "to": end, "days": ",".join(sorted(days)), "zone": zone})
    start = moment.replace(second=0, microsecond=0, tzinfo=UTC)
    opens = datetime.fromtimestamp(hours.opens(start.timestamp(), None), UTC)
    assert opens >= start

    def within(instant: datetime) -> bool:
        wall = instant.astimezone(ZoneInfo(zone))
        minute, day = wall.strftime("%H:%M"), DAYS[wall.weekday()]
        before = DAYS[wall.weekday() - 1]
        if begin < end:
            return begin <= minute < end and day in days
        return (minute >= begin and day in days) or (minute < end and before in days)

    assert within(opens)
    for back in range(1, min(2_000, int((opens - start).total_seconds() // 60) + 1)):
        assert not within(opens - timedelta(minutes=back))
