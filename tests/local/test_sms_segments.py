"""The segments that the simulated Twilio counts: GSM 03.38's rule, at its borders."""

import pytest

from mailroom_local.providers.sms import BASIC, EXTENDED, segments


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 1),
        ("a" * 160, 1),
        ("a" * 161, 2),
        ("a" * 306, 2),
        ("a" * 307, 3),
        ("€" * 80, 1),
        ("€" * 81, 2),
        ("a" * 152 + "€" + "a" * 151, 2),  # the euro sign does not fit into the first segment's last septet
        ("a" * 152 + "€" + "a" * 152, 3),
        ("ж" * 70, 1),
        ("ж" * 71, 2),
        ("ж" * 134, 2),
        ("ж" * 135, 3),
        ("🙂" * 35, 1),
        ("🙂" * 36, 2),
        ("ж" * 66 + "🙂" + "ж" * 66, 3),  # nor is a surrogate pair split
    ],
)
def test_a_text_takes_so_many_segments(text: str, count: int) -> None:
    assert segments(text) == count


def test_the_alphabet_is_the_standards() -> None:
    assert (len(BASIC), len(EXTENDED), BASIC & EXTENDED) == (127, 10, set())  # without the escape itself
    assert "ç" not in BASIC
    assert "Ç" in BASIC
