"""The page of refusals agrees with the providers' tables, and each row names its source."""

from collections.abc import Iterator
from datetime import date

import pytest

from mailroom.message.outcome import Row
from tests.support import refusals_page


def refusal_rows() -> Iterator[tuple[str, Row]]:
    """Yield each row of each table, with its key."""
    for tables in refusals_page.TABLES.values():
        for table in tables.values():
            yield from table.items()


def test_the_page_of_refusals_equals_the_page_generated_from_the_tables_of_refusals() -> None:
    assert refusals_page.PAGE.read_text() == refusals_page.whole_page(), "run: make schema"


def test_the_page_of_refusals_has_exactly_the_faults_to_which_a_provider_refusal_is_assigned() -> None:
    assert {row.fault for _, row in refusal_rows()} == set(refusals_page.FAULTS)


@pytest.mark.parametrize(
    ("code", "row"), [*refusal_rows()], ids=lambda value: value if isinstance(value, str) else ""
)
def test_each_refusal_has_a_code_a_text_a_source_and_the_date_on_which_the_source_was_read(
    code: str, row: Row
) -> None:
    assert row.code == code
    assert row.words
    assert row.source.startswith(("https://", "botocore "))
    assert "{" not in row.source
    assert date(2026, 11, 1) <= date.fromisoformat(row.read)
