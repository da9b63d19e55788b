"""Times and spans of time: read as operators type them, and written for them."""

import pytest

from mailroom_ops.shared.screen import Refused
from mailroom_ops.shared.times import duration, seconds_of, short, span_of


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [("90s", 90), ("15m", 900), (" 2h ", 7200), ("1d", 86_400), ("2w", 1_209_600), ("0s", 0)],
)
def test_a_span_is_a_number_and_its_unit(typed: str, seconds: int) -> None:
    assert span_of(typed) == seconds_of(typed) == seconds


@pytest.mark.parametrize("typed", ["", "15", "m", "1.5h", "-1h", "1 h", "1y", "1H", "1234567s", "\u0661h"])
def test_an_invalid_span_is_refused_with_examples(typed: str) -> None:
    assert span_of(typed) is None
    with pytest.raises(Refused, match="is not a time span; use one like 90s, 15m, 2h, 1d or 2w"):
        seconds_of(typed)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0 seconds"), (119, "119 seconds"), (120, "2 minutes"), (7200, "2 hours"), (200_000, "2 days")],
)
def test_a_duration_is_rounded_to_its_largest_unit(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_time_is_written_to_the_second() -> None:
    assert short("2026-11-21T09:00:01.250Z") == "2026-11-21 09:00:01 UTC"
    assert short(None) == "an unknown time"
