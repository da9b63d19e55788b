"""A campaign's schedule in words."""

import pytest

from mailroom.clock import epoch
from mailroom_ops.campaigns.schedule import words_of

NOW = epoch("2026-11-25T12:00:00Z")  # a Wednesday


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 9 ? * MON *", "Mondays 09:00 UTC, next 2026-11-30"),
        ("0 9 ? * WED *", "Wednesdays 09:00 UTC, next 2026-12-02"),
        ("30 13 ? * WED *", "Wednesdays 13:30 UTC, next 2026-11-25"),
        ("0 8 ? * MON-FRI *", "Mondays, Tuesdays, Wednesdays, Thursdays, Fridays 08:00 UTC, next 2026-11-26"),
        ("0 8 ? * 1,7 *", "Sundays, Saturdays 08:00 UTC, next 2026-11-28"),
        ("5 8 * * ? *", "Daily 08:05 UTC, next 2026-11-26"),
        ("0 13 ? * WED 2199", "Wednesdays 13:00 UTC, in 2199 alone"),
        ("0 13 ? * WED 2026", "Wednesdays 13:00 UTC, next 2026-11-25"),
        ("0 9 1 * ? *", "0 9 1 * ? * UTC"),
        ("0/15 9 ? * MON *", "0/15 9 ? * MON * UTC"),
        ("0 9 ? * MON#1 *", "0 9 ? * MON#1 * UTC"),
        ("0 9 ? * 9 *", "0 9 ? * 9 * UTC"),
        ("", " UTC"),
    ],
)
def test_what_is_weekly_or_daily_is_said_in_words_and_the_rest_as_it_is(cron: str, words: str) -> None:
    assert words_of(cron, "UTC", NOW) == words


def test_the_next_time_is_of_the_schedules_own_zone() -> None:
    late = epoch("2026-11-24T23:30:00Z")  # there it is Wednesday already
    assert (
        words_of("0 9 ? * WED *", "Europe/Berlin", late) == "Wednesdays 09:00 Europe/Berlin, next 2026-11-25"
    )
