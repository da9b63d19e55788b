"""Times in the forms that the ledger and the producers use."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailroom.clock import epoch, iso, milliseconds
from tests.support.unit.shared import NOW

moments = st.integers(0, 4_102_444_800_000).map(lambda ms: ms / 1000)


@given(moments)
def test_a_time_is_written_in_utc_with_milliseconds_and_can_be_read_back(moment: float) -> None:
    text = iso(moment)
    assert len(text) == len("2026-11-21T09:00:00.000Z")
    assert epoch(text) * 1000 == pytest.approx(milliseconds(moment), abs=0.5)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (NOW, "2026-11-21T09:00:00.000Z"),
        (NOW + 0.25, "2026-11-21T09:00:00.250Z"),
        (NOW + 59.999, "2026-11-21T09:00:59.999Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (-62_135_596_800, "0001-01-01T00:00:00.000Z"),
    ],
)
def test_a_time_is_written_in_iso_8601_with_four_digits_of_the_year_and_three_decimals(
    moment: float, text: str
) -> None:
    assert iso(moment) == text


def test_a_time_without_an_offset_is_utc() -> None:
    assert epoch("2026-11-21T09:00:00") == datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("text", ["", "now", "2026-02-30", "2026-11-21T25:00:00Z"])
def test_a_string_that_is_not_an_iso_8601_time_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"Invalid isoformat|day (is out of|30 must be in) range|hour must be"
    ):
        epoch(text)
