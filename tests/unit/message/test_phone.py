"""Telephone numbers: one line has one name, however it is written."""

import pytest

from mailroom.message.address import to_e164


@pytest.mark.parametrize(
    "text",
    [
        "+16175551234",
        "+1 617 555 1234",
        "+1 (617) 555-1234",
        "+1.617.555.1234",
        " +1-617-555-1234 ",
        "tel:+1-617-555-1234",
        "\uff0b16175551234",
        "+\uff11\uff16\uff11\uff17\uff15\uff15\uff15\uff11\uff12\uff13\uff14",
    ],
)
def test_one_line_has_one_name_however_it_is_written(text: str) -> None:
    assert to_e164(text) == "+16175551234"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("+49 30 12345678", "+493012345678"),
        ("+49 (0)30 12345678", "+493012345678"),
        ("+44 20 7946 0018", "+442079460018"),
        ("+39 06 698 12345", "+390669812345"),  # Italy's zero belongs to the number
        ("+800 1234 5678", "+80012345678"),
    ],
)
def test_numbers_of_any_country_are_known(text: str, line: str) -> None:
    assert to_e164(text) == line


@pytest.mark.parametrize("text", ["+16175551234", "+493012345678", "+390669812345"])
def test_a_normal_form_stays_as_it_is(text: str) -> None:
    assert to_e164(to_e164(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "fax",
        "+",
        "16175551234",
        "617-555-1234",
        "0016175551234",
        "+1617555",
        "+161755512345678",
        "+16175551234 ext. 5",
        "+16175551234;ext=5",
        "+0123456789",
        "+16175551234,+16175551235",
        "vincent@example.com",
        "+1" + "6" * 300,
    ],
)
def test_what_names_no_line_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(ValueError, match=r"^is not a number in international form; use \+ and country"):
        to_e164(text)
