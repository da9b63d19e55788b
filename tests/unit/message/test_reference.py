"""References, which go to providers with a message and come back with its events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailroom.errors import Malformed
from mailroom.message.address import has_control
from mailroom.message.message import MAX_ID_BYTES, Reference

IDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60).filter(
    lambda text: len(text.encode()) <= MAX_ID_BYTES and not has_control(text)
)


@given(IDS, st.integers(1, 999_999_999))
def test_a_message_reference_encoded_as_text_decodes_to_the_same_id_and_attempt(
    id_: str, attempt: int
) -> None:
    reference = Reference(id_, attempt)
    assert Reference.read(reference.text) == reference


def test_a_message_reference_omits_the_attempt_number_of_the_first_attempt() -> None:
    assert Reference("m-1").text == "bS0x"
    assert Reference("m-1", 12).text == "bS0x.12"


def test_the_reference_of_the_longest_message_id_fits_a_tag_of_ses() -> None:
    assert len(Reference("x" * MAX_ID_BYTES).text) == 240


@pytest.mark.parametrize(
    "text",
    [
        "",
        "b",
        "bS0x=",  # padded
        "bS0x.",
        "bS0x.0",
        "bS0x.1",  # the first attempt is without a number
        "bS0x.02",
        "bS0x.-2",
        "bS0x.9999999999",
        "bS0x.2.3",
        "bS0y bS0x",
        "bS0x\n",
        "../bS0x",
        "bR",  # bits beyond the last byte that are not zero
        "_____w",  # no UTF-8
        "AA",  # a control character
        "eHh4" * 61,  # 183 bytes
        "bS0x.\uff12",  # a digit, but no ASCII
    ],
)
def test_a_text_that_is_not_a_canonical_message_reference_is_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        Reference.read(text)


@given(st.text(max_size=300))
def test_any_text_accepted_as_a_message_reference_is_encoded_to_the_same_text_again(text: str) -> None:
    try:
        reference = Reference.read(text)
    except Malformed:
        return
    assert reference.text == text
