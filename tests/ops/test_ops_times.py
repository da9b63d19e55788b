"""Times and spans of time: read as operators type them, and written for them."""

import pytest

from mailroom_ops.shared.screen import Refused
from mailroom_ops.shared.times import duration, exactly, seconds_of, short, span_of, speed_of


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [("90s", 90), ("15m", 900), (" 2h ", 7200), ("1d", 86_400), ("2w", 1_209_600), ("0s", 0)],
)
def test_an_option_for_a_span_of_time_is_read_as_a_number_and_a_unit(typed: str, seconds: int) -> None:
    assert span_of(typed) == seconds_of(typed) == seconds


@pytest.mark.parametrize("typed", ["", "15", "m", "1.5h", "-1h", "1 h", "1y", "1H", "1234567s", "\u0661h"])
def test_an_invalid_span_of_time_is_refused_with_a_sentence_of_examples(typed: str) -> None:
    assert span_of(typed) is None
    with pytest.raises(Refused, match="is not a time span; use one like 90s, 15m, 2h, 1d or 2w"):
        seconds_of(typed)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0 seconds"), (119, "119 seconds"), (120, "2 minutes"), (7200, "2 hours"), (200_000, "2 days")],
)
def test_a_duration_is_rounded_to_its_largest_unit(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.96, "10.0 s"),
        (42.4, "42 s"),
        (60, "1 min"),
        (4000, "1 h 6 min"),
        (3600, "1 h"),
        (14_285.7, "3 h 58 min"),
        (90_000, "1 d 1 h"),
        (86_460, "1 d"),
    ],
)
def test_a_duration_is_printed_in_its_two_largest_units(seconds: float, words: str) -> None:
    assert exactly(seconds) == words


@pytest.mark.parametrize(
    ("speed", "words"),
    [(10_000.0, "10,000"), (99.96, "100"), (6.7633, "6.76"), (0.0322, "0.0322"), (7.0, "7")],
)
def test_the_printed_speed_of_a_lane_is_rounded_to_significant_digits(speed: float, words: str) -> None:
    assert speed_of(speed) == words


def test_a_time_is_printed_in_utc_to_the_second() -> None:
    assert short("2026-11-21T09:00:01.250Z") == "2026-11-21 09:00:01 UTC"
    assert short(None) == "an unknown time"
