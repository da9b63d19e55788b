"""Segments of a text, by which it is billed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailroom.channels.sms.segments import Segments, checked, segments_of, widening
from mailroom.errors import Invalid

GSM = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
"""The basic alphabet of 3GPP TS 23.038 without the escape."""
ESCAPED = "\f^{}\\[~]|€"
"""The extension of that alphabet: each character takes two places."""
SEGMENT, HEADER = 140 * 8, 6 * 8
"""Bits of a segment, and those of the header by which segments are joined."""


def repeated_characters(characters: str) -> st.SearchStrategy[str]:
    """Build texts of repeated characters, long enough for several segments."""
    runs = st.builds(str.__mul__, st.sampled_from(characters), st.integers(1, 170))
    return st.lists(runs, min_size=1, max_size=6).map("".join)


def bits(text: str, encoding: str) -> int:
    """Return the size of a text in its encoding: in septets, or in UTF-16."""
    if encoding == "UCS-2":
        return 8 * len(text.encode("utf-16-be"))
    return 7 * (len(text) + sum(map(text.count, ESCAPED)))


def segments(text: str, encoding: str) -> list[str]:
    """Cut a text into segments: each has whole characters, as many as fit beside the header."""
    parts = [""]
    for character in text:
        if bits(parts[-1] + character, encoding) > SEGMENT - HEADER:
            parts.append("")
        parts[-1] += character
    return parts


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
        ("a" * 70 + "”", 2, "UCS-2"),  # a typographic quote doubles the price of the whole text
        ("👍" * 35, 1, "UCS-2"),
        ("👍" * 36, 2, "UCS-2"),
        ("a" * 66 + "👍" + "a" * 66, 3, "UCS-2"),  # an emoji is not cut in two either
        ("a" * 1600, 11, "GSM-7"),
        ("", 0, "GSM-7"),
    ],
)
def test_the_segment_count_of_a_text_follows_the_sms_standard(text: str, count: int, encoding: str) -> None:
    assert segments_of(text) == Segments(count, encoding)


@given(repeated_characters("aÇ\n€{") | repeated_characters("aÇ€ж\u0301\u200d👍\U0010ffff").map("ж".__add__))
def test_the_segment_count_of_any_text_matches_a_model_that_never_cuts_a_character(text: str) -> None:
    encoding = "UCS-2" if text[0] == "ж" else "GSM-7"
    numbers = [number for number, segment in enumerate(segments(text, encoding), 1) for _ in segment]
    for end, number in enumerate(numbers, 1):
        count = 1 if bits(text[:end], encoding) <= SEGMENT else number
        assert segments_of(text[:end]) == Segments(count, encoding)


def test_only_characters_of_the_gsm_7_alphabet_and_its_extension_are_encoded_in_gsm_7() -> None:
    characters = map(chr, range(0x11000))
    assert {each for each in characters if segments_of(each).encoding == "GSM-7"} == {*GSM, *ESCAPED}


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


def test_the_facts_about_a_text_are_its_number_of_segments_and_its_encoding() -> None:
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
