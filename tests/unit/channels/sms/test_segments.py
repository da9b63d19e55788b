"""Segments of a text, by which it is billed."""

import pytest

from mailroom.channels.sms.text import Segments, checked, segments_of, widening
from mailroom.errors import Invalid

GSM = (
    "@£$¥èéùìòÇ\nØøÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
"""The basic alphabet of 3GPP TS 23.038 without CR and escape."""
ESCAPED = "^{}\\[~]|€"
"""The extension of that alphabet: each character takes two places."""


@pytest.mark.parametrize(
    ("text", "count", "encoding"),
    [
        ("a", 1, "GSM-7"),
        ("a" * 160, 1, "GSM-7"),
        ("a" * 161, 2, "GSM-7"),
        ("a" * 306, 2, "GSM-7"),
        ("a" * 307, 3, "GSM-7"),
        ("€" * 80, 1, "GSM-7"),
        ("€" * 81, 2, "GSM-7"),
        ("a" * 152 + "€" + "a" * 152, 3, "GSM-7"),  # an escaped character is never cut in two
        ("a\n" * 80, 1, "GSM-7"),
        ("ж", 1, "UCS-2"),
        ("ж" * 70, 1, "UCS-2"),
        ("ж" * 71, 2, "UCS-2"),
        ("ж" * 134, 2, "UCS-2"),
        ("ж" * 135, 3, "UCS-2"),
        ("a" * 70 + "”", 2, "UCS-2"),  # one typographic quote doubles the price of the whole text
        ("👍" * 35, 1, "UCS-2"),
        ("👍" * 36, 2, "UCS-2"),
        ("a" * 66 + "👍" + "a" * 66, 3, "UCS-2"),  # an emoji is not cut in two either
        ("a" * 1600, 11, "GSM-7"),
    ],
)
def test_the_segment_count_of_a_text_follows_the_sms_standard(text: str, count: int, encoding: str) -> None:
    assert segments_of(text) == Segments(count, encoding)


@pytest.mark.parametrize("character", GSM)
def test_each_character_of_the_basic_gsm_7_alphabet_counts_as_one_of_160_characters(character: str) -> None:
    assert segments_of(character * 160) == Segments(1, "GSM-7")
    assert segments_of(character * 161) == Segments(2, "GSM-7")


@pytest.mark.parametrize("character", ESCAPED)
def test_each_character_of_the_gsm_7_extension_counts_as_two_of_160_characters(character: str) -> None:
    assert segments_of(character * 80) == Segments(1, "GSM-7")
    assert segments_of(character * 81) == Segments(2, "GSM-7")


@pytest.mark.parametrize("character", "çáíóúâêôãõ`“”‘’–—…•\u00a0")  # noqa: RUF001
def test_a_character_outside_of_gsm_7_changes_the_encoding_to_ucs_2(character: str) -> None:
    assert segments_of(character).encoding == "UCS-2"


def test_the_ledger_gets_the_number_of_segments_and_the_encoding_of_a_text() -> None:
    assert checked("text", "a" * 161, 2).facts == {"segments": 2, "encoding": "GSM-7"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a" * 307, "text: takes 3 segments in GSM-7; use at most 2"),
        (
            "ж" * 135,
            "text: takes 3 segments in UCS-2; use at most 2; 'ж' (U+0436) makes this text UCS-2: 70 "
            "characters a segment, not 160",
        ),
    ],
)
def test_the_error_about_a_text_of_too_many_segments_contains_the_segment_count_and_the_limit(
    text: str, sentence: str
) -> None:
    with pytest.raises(Invalid) as caught:
        checked("text", text, 2)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("It\u2019s", "'\u2019' (U+2019) makes"),
        ("“a” \u2013 …", "'“' (U+201C), '”' (U+201D), '\u2013' (U+2013) … make"),
        ("\u200b👍", "'\\u200b' (U+200B), '👍' (U+1F44D) make"),
    ],
)
def test_the_reason_for_ucs_2_names_the_characters_that_require_ucs_2(text: str, subject: str) -> None:
    assert widening(text) == f"{subject} this text UCS-2: 70 characters a segment, not 160"


def test_a_text_in_gsm_7_has_an_empty_reason_for_ucs_2() -> None:
    assert widening("plain {€}") == ""
