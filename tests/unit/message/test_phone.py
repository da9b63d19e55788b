"""Telephone numbers: each line has one canonical form, which no other line shares."""

import phonenumbers
import pytest
from hypothesis import given
from hypothesis import strategies as st
from phonenumbers import PhoneNumberFormat

from mailroom.message.address import spellings, to_e164

WORDS = (
    *("Fax", "GSM", "Oma", "Büro", "dgfs", "OO", "l", "ext", "x"),
    *("casa", "hem", "koti", "bureau", "ofis", "τηλ", "факс", "доб", "מספר", "هاتف"),
    *("传真", "内線", "전화", "फ़ैक्स", "โทร"),
)
"""Words that people write beside numbers, in some fifteen languages and their scripts."""
REGIONS = sorted(phonenumbers.SUPPORTED_REGIONS)
FORMS = (PhoneNumberFormat.INTERNATIONAL, PhoneNumberFormat.NATIONAL, PhoneNumberFormat.E164)
SCRIPTS = ("0123456789", "٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹", "०१२३४५६७८९", "０１２３４５６７８９")  # noqa: RUF001
"""Digits of ASCII, of Arabic, Persian and Hindi, and fullwidth ones as in Japan."""


def number_of(region: str, last: int) -> phonenumbers.PhoneNumber:
    """Return a number of the region that ends with these three digits."""
    example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    number = example or phonenumbers.example_number(region)
    assert number is not None
    number.national_number = (number.national_number or 0) // 1000 * 1000 + last
    return number


numbers = st.builds(number_of, st.sampled_from(REGIONS), st.integers(0, 999))


@pytest.mark.parametrize(
    "text",
    [
        "+16175551234",
        "+1 617 555 1234",
        "+1 (617) 555-1234",
        "+1.617.555.1234",
        " +1-617-555-1234 ",
        "(+1) 617 555 1234",
        "\uff0b16175551234",
        "+\uff11\uff16\uff11\uff17\uff15\uff15\uff15\uff11\uff12\uff13\uff14",
        "+١٦١٧٥٥٥١٢٣٤",
    ],
)
def test_every_spelling_of_a_phone_number_is_normalised_to_the_same_e164_number(text: str) -> None:
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
def test_a_phone_number_of_any_country_in_international_form_is_valid(text: str, line: str) -> None:
    assert to_e164(text) == line


@pytest.mark.parametrize(
    ("region", "text", "line"),
    [
        ("DE", "030 123456", "+4930123456"),
        ("DE", "0049 30 123456", "+4930123456"),
        ("US", "1 617 555 1234", "+16175551234"),
        ("US", "011 49 30 123456", "+4930123456"),
        ("AU", "0011 49 30 123456", "+4930123456"),
        ("BR", "0014 49 30 123456", "+4930123456"),  # an international prefix names a carrier in Brazil
        ("RU", "8 495 123-45-67", "+74951234567"),
        ("HU", "06 1 123 4567", "+3611234567"),
        ("BY", "8 017 123 45 67", "+375171234567"),
        ("BY", "017 123 45 67", "+375171234567"),
        ("LT", "8 612 34567", "+37061234567"),
        ("LT", "0 612 34567", "+37061234567"),
        ("IT", "06 698 12345", "+390669812345"),
    ],
)
def test_a_phone_number_in_national_form_is_valid_for_its_region(region: str, text: str, line: str) -> None:
    assert to_e164(text, region) == line


@pytest.mark.parametrize(
    ("region", "text", "line"),
    [
        (None, "+52 1 55 1234 5678", "+525512345678"),
        (None, "+5215512345678", "+525512345678"),
        (None, "+525512345678", "+525512345678"),
        (None, "+54 9 11 2345-6789", "+5491123456789"),
        (None, "+54 11 15 2345-6789", "+5491123456789"),
        ("AR", "011 15-2345-6789", "+5491123456789"),
        ("AR", "02966 15 12-3456", "+5492966123456"),
        (None, "+54 343 15 555-1212", "+5493435551212"),
    ],
)
def test_both_forms_of_a_mexican_or_argentinian_mobile_number_are_normalised_to_one_number(
    region: str | None, text: str, line: str
) -> None:
    assert to_e164(text, region) == line


def test_an_argentinian_number_without_the_digit_9_is_unchanged_and_matches_the_form_with_the_9() -> None:
    assert to_e164("+54 11 2345-6789") == "+541123456789"
    assert spellings("+541123456789") == ("+541123456789", "+5491123456789")
    assert spellings("+5491123456789") == ("+5491123456789", "+541123456789")


@given(numbers, st.sampled_from(FORMS), st.sampled_from(WORDS), st.data())
def test_a_phone_number_that_contains_a_word_is_refused_and_the_error_quotes_the_word(
    number: phonenumbers.PhoneNumber, form: int, word: str, data: st.DataObject
) -> None:
    digits = phonenumbers.format_number(number, form)
    position = data.draw(st.integers(0, len(digits)))
    around = data.draw(st.sampled_from(["{}", " {} ", "({})", " {}: ", "/{}", ";{}="]))
    region = data.draw(st.sampled_from([None, phonenumbers.region_code_for_number(number)]))
    with pytest.raises(ValueError, match="write digits alone, such as") as refusal:
        to_e164(digits[:position] + around.format(word) + digits[position:], region)
    assert f'"{word}"' in str(refusal.value)


@given(
    st.one_of(
        st.builds(phonenumbers.format_number, numbers, st.sampled_from(FORMS)),
        st.text(st.sampled_from("0123456789"), min_size=5, max_size=16),
        st.text(st.sampled_from("0123456789+ -/().,;#*~"), min_size=5, max_size=25),
    ),
    st.sampled_from(["", "+", "00", "0", "8", "011 ", "+54 9 ", "+52 1", "+49 (0)"]),
    st.sampled_from(SCRIPTS),
    st.sampled_from([None, *REGIONS]),
)
def test_normalising_a_phone_number_keeps_every_digit_except_those_of_dialling_prefixes(
    text: str, prefix: str, script: str, region: str | None
) -> None:
    text = prefix + text.lstrip("+" if prefix else "")
    try:
        line = to_e164(text.translate(str.maketrans("0123456789", script)), region)
    except ValueError:
        return
    digits = "".join(character for character in text if character.isdigit())
    assert to_e164(line) == line
    code = str(phonenumbers.parse(line).country_code)
    national = line.removeprefix(f"+{code}")
    written = [national]
    if code == "54" and national.startswith("9"):
        written += [f"{national[1:end]}15{national[end:]}" for end in (3, 4, 5)]
    heads = [digits.removesuffix(form) for form in written if digits.endswith(form)]
    assert heads, "a digit was changed or added"
    head = min(heads, key=len)
    if code == "52":
        head = head.removesuffix("1")
    trunk = head.rpartition(code)[2]
    assert trunk in {"", "0", "1", "8", "06", "80"}, "a digit is gone that is in no prefix"


@pytest.mark.parametrize(
    ("region", "text"),
    [
        ("BR", "0 15 11 2345 6789"),  # with a carrier's code
        ("BR", "90 11 91234 5678"),  # a call that the callee pays for
        ("AU", "1831 02 1234 5678"),  # a call that hides the caller's number
        ("AG", "555 1234"),  # without an area code, as in the next two
        ("GG", "255 678"),
        ("SM", "886377"),
        ("FR", "061234dgfs"),
        ("DE", "030 123456 o. 789"),
    ],
)
def test_a_phone_number_that_is_incomplete_or_has_additional_digits_for_its_region_is_refused(
    region: str, text: str
) -> None:
    with pytest.raises(ValueError, match=r"write digits alone|is not a number as dialled in"):
        to_e164(text, region)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "+",
        "16175551234",
        "617-555-1234",
        "0016175551234",
        "+1617555",
        "+161755512345678",
        "+16175551234#5",
        "+0123456789",
        "+16175551234,+16175551235",
        "+1" + "6" * 300,
    ],
)
def test_an_invalid_phone_number_is_refused_with_a_description_of_the_valid_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"^is not a number in international form; use \+ and country"):
        to_e164(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("fax", "fax"),
        ("tel:+1-617-555-1234", "tel"),
        ("+16175551234 ext. 5", "ext"),
        ("+16175551234;ext=5", "ext"),
        ("+16175551234;isub=12", "isub"),
        ("+81ー3ー1234ー5678", "ー"),
        ("+49 30 123456²", "²"),
        ("vincent@example.com", "vincent"),
        ("x" * 300, "x" * 20),
    ],
)
def test_the_error_about_letters_in_a_phone_number_quotes_the_letters_without_the_digits(
    text: str, word: str
) -> None:
    with pytest.raises(ValueError, match="write digits alone") as refusal:
        to_e164(text)
    assert str(refusal.value) == f'has letters ("{word}"); write digits alone, such as +16175551234'
