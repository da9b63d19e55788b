"""Counts in sentences."""

import pytest

from mailroom.errors import quantity


@pytest.mark.parametrize(
    ("count", "messages", "letters"),
    [
        (0, "0 messages", "0 dead letters wait"),
        (1, "1 message", "1 dead letter waits"),
        (2, "2 messages", "2 dead letters wait"),
        (2000, "2,000 messages", "2,000 dead letters wait"),
    ],
)
def test_a_noun_is_singular_only_for_a_count_of_one(count: int, messages: str, letters: str) -> None:
    assert quantity(count, "message") == messages
    assert quantity(count, "dead letter waits", "dead letters wait") == letters
