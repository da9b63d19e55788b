"""Mail addresses: SES accepts them, and they cannot leave their header line."""

import re
import sys
from collections.abc import Callable
from email.utils import formataddr

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mailroom.message.address import bare, has_control, normalise, readable, spellings, split
from tests.support.fuzz.work import assert_linear_time

LOCAL_64 = "n" * 64


@pytest.mark.parametrize(
    ("text", "name", "address"),
    [
        ("vincent@example.com", "", "vincent@example.com"),
        ("  vincent@example.com ", "", "vincent@example.com"),
        ("o'hara+tag@example.co.uk", "", "o'hara+tag@example.co.uk"),
        ("Vincent <vincent@example.com>", "Vincent", "vincent@example.com"),
        (" Vincent van Gogh  < vincent@example.com > ", "Vincent van Gogh", "vincent@example.com"),
        ('"Gogh, Vincent" <vincent@example.com>', "Gogh, Vincent", "vincent@example.com"),
        ('"Ada \\"Countess\\" Lovelace" <ada@example.com>', 'Ada "Countess" Lovelace', "ada@example.com"),
        ('"Back\\\\slash" <a@example.com>', "Back\\slash", "a@example.com"),
        ('"Ada <the Countess>"<ada@example.com>', "Ada <the Countess>", "ada@example.com"),
        ("=?utf-8?q?J=C3=BCrgen?= <j@example.com>", "Jürgen", "j@example.com"),
        ("=?ISO-8859-1?B?SvxyZ2Vu?= <j@example.com>", "Jürgen", "j@example.com"),
        ("=?utf-8?q?J=C3=BCr?= =?utf-8?q?gen?= <j@example.com>", "Jürgen", "j@example.com"),
        ("=?no-such-charset?q?J=FC?= <j@example.com>", "=?no-such-charset?q?J=FC?=", "j@example.com"),
        ("=?utf-8?b?wqA=?= <j@example.com>", "", "j@example.com"),
        ("=?utf-8?q?=FF?= <j@example.com>", "=?utf-8?q?=FF?=", "j@example.com"),
        ("=?utf-8?b?SvxyZ2V?= <j@example.com>", "=?utf-8?b?SvxyZ2V?=", "j@example.com"),
        ("=?unicode_escape?q?=5Cud800?= <j@example.com>", "=?unicode_escape?q?=5Cud800?=", "j@example.com"),
        ("<vincent@example.com>", "", "vincent@example.com"),
        ("vincent@münchen.example", "", "vincent@xn--mnchen-3ya.example"),
        ("v@straße.example", "", "v@xn--strae-oqa.example"),
        ("v@STRASSE.example", "", "v@STRASSE.example"),
        ("v@βόλος.example", "", "v@xn--nxasmm1c.example"),
        ("v@\u0646\u0627\u0645\u0647\u200c\u0627\u06cc.example", "", "v@xn--mgba3gch31f060k.example"),
        ("v@MÜNCHEN.Example", "", "v@xn--mnchen-3ya.example"),
        ("v@bu\u0308cher。example", "", "v@xn--bcher-kva.example"),
        ("v@xn--53h.example", "", "v@xn--53h.example"),
        (f"{LOCAL_64}@example.com", "", f"{LOCAL_64}@example.com"),
        ("Vincent@Example.COM", "", "Vincent@Example.COM"),
    ],
)
def test_a_mail_address_is_split_into_its_name_and_its_ascii_address(
    text: str, name: str, address: str
) -> None:
    assert split(text) == (name, address)


NOT_AN_ADDRESS = "is not a mail address; use name@domain.example"
NO_DOMAIN = "is not a mail address: its domain is not valid; use name@domain.example"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", NOT_AN_ADDRESS),
        ("vincent", NOT_AN_ADDRESS),
        ("@example.com", NOT_AN_ADDRESS),
        ("vin cent@example.com", NOT_AN_ADDRESS),
        (".vincent@example.com", NOT_AN_ADDRESS),
        ("vincent.@example.com", NOT_AN_ADDRESS),
        ("vin..cent@example.com", NOT_AN_ADDRESS),
        ("vincent@theo@example.com", NOT_AN_ADDRESS),
        ("münchen@example.com", NOT_AN_ADDRESS),
        (f"{LOCAL_64}n@example.com", NOT_AN_ADDRESS),
        ("a@example.com, b@example.com", NOT_AN_ADDRESS),
        ("Vincent <a@example.com> <b@example.com>", NOT_AN_ADDRESS),
        ('"Vincent" van <a@example.com>', NOT_AN_ADDRESS),
        ('"Vincent\\" <a@example.com>', NOT_AN_ADDRESS),
        ('"Vincent" "van Gogh" <a@example.com>', NOT_AN_ADDRESS),
        ('"Vincent" <b@example.com> <a@example.com>', NOT_AN_ADDRESS),
        ("vincent@", NO_DOMAIN),
        ("vincent@localhost", NO_DOMAIN),
        ("vincent@-example.com", NO_DOMAIN),
        ("vincent@example-.com", NO_DOMAIN),
        ("vincent@exa_mple.com", NO_DOMAIN),
        ("vincent@example..com", NO_DOMAIN),
        ("vincent@example.com.", NO_DOMAIN),
        (f"vincent@{'d' * 64}.example", NO_DOMAIN),
        (f"vincent@{'ü' * 64}.example", NO_DOMAIN),
        ("vincent@[127.0.0.1]", NO_DOMAIN),
        ("vincent@☕.example", NO_DOMAIN),
        ("vincent@-ü.example", NO_DOMAIN),
        ("vincent@ü .example", NO_DOMAIN),
        ("vincent@ü..example", NO_DOMAIN),
        ("vincent@a\u200db.example", NO_DOMAIN),
        (f"vincent@{'ﷺ' * 250}.example", NO_DOMAIN),
        ("a@" + "d.".join([""] + ["d" * 60] * 4) + "example", NO_DOMAIN),
    ],
)
def test_an_invalid_mail_address_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="is not a mail address") as caught:
        split(text)
    assert str(caught.value) == problem


@pytest.mark.parametrize("break_", ["\n", "\r", "\r\n", "\0", "\x7f", "\x85", "\u2028", "\u2029", "\t"])
@pytest.mark.parametrize(
    "text", ["a@example.com{}Bcc: b@example.com", "A{}B <a@example.com>", "a@example.com{}"]
)
def test_a_mail_address_with_a_line_break_or_control_character_is_refused(text: str, break_: str) -> None:
    with pytest.raises(
        ValueError, match="holds a line break or control character; use one line of plain text"
    ):
        split(text.format(break_))


@pytest.mark.parametrize("break_", ["=0A", "=0D=0A", "=00", "=E2=80=A8", "=09"])
def test_an_encoded_name_that_hides_a_line_break_or_control_character_is_not_decoded(break_: str) -> None:
    name = f"=?utf-8?q?Ada{break_}Bcc=3A_b?="
    assert split(f"{name} <a@example.com>") == (name, "a@example.com")
    assert normalise(f'"{name}" <a@example.com>') == f"{name} <a@example.com>"


PRINTABLE = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=80)


@given(PRINTABLE | st.text(st.sampled_from('aü "\\<>@,;:()[]=?._'), max_size=40))
def test_any_printable_name_formatted_by_formataddr_is_read_back_unchanged(name: str) -> None:
    assume("=?" not in name)  # formataddr does not encode an encoded word again
    assume(len(formataddr((name, "ada@example.com"))) <= 998)
    assert split(formataddr((name, "ada@example.com"))) == (name.strip(), "ada@example.com")


def normalised(name: str) -> str | None:
    """Return an address with this name in its normal form, or None if it is too long."""
    try:
        return normalise(formataddr((name, "ada@example.com")))
    except ValueError:
        return None


@given(PRINTABLE | st.text(st.sampled_from('aü山 "\\<>@,;:()[]=?._'), max_size=120))
def test_a_normalised_address_has_at_most_320_characters_and_encoded_words_of_at_most_75(name: str) -> None:
    assume("=?" not in name)
    normal = normalised(name)
    if normal is None:  # four words of at least 42 bytes fit
        assert len(name.encode()) > 4 * 42
        return
    assert (normalise(normal), split(normal)[0]) == (normal, name.strip())
    assert normal.isascii()
    assert len(normal) <= 320
    assert all(len(word) <= 75 for word in re.findall(r"=\?[^ ]*\?=", normal))


@pytest.mark.parametrize(
    ("letter", "count"), [("N", 302), (",", 300), ('"', 150), ("ü", 88), ("山", 60), ("\U0001f4ee", 44)]
)
def test_a_name_that_makes_an_encoded_address_longer_than_320_characters_is_refused(
    letter: str, count: int
) -> None:
    assert normalised(letter * count) is not None
    with pytest.raises(ValueError, match=r"has 3[23]\d characters with its encoded name; use at most 320"):
        normalise(formataddr((letter * (count + 1), "ada@example.com")))


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "windows-1252", "iso-2022-jp"])
def test_a_name_that_formataddr_encoded_in_any_charset_is_decoded(charset: str) -> None:
    name = "梵高" if charset == "iso-2022-jp" else "Jürgen Grün"
    assert split(formataddr((name, "j@example.com"), charset)) == (name, "j@example.com")


def test_a_mail_address_with_more_than_254_characters_is_refused() -> None:
    domain = ".".join(["d" * 61] * 3 + ["e" * 62])
    local = "n" * (254 - 1 - len(domain))
    assert len(split(f"{local}@{domain}")[1]) == 254
    with pytest.raises(ValueError, match="domain is not valid"):
        split(f"n{local}@{domain}")


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("vincent@example.com", "vincent@example.com"),
        ("Vincent <vincent@example.com>", "Vincent <vincent@example.com>"),
        ('"Gogh, Vincent" <vincent@example.com>', '"Gogh, Vincent" <vincent@example.com>'),
        ("Gogh, Vincent <vincent@example.com>", '"Gogh, Vincent" <vincent@example.com>'),
        ("Jürgen <j@bücher.example>", "=?utf-8?q?J=C3=BCrgen?= <j@xn--bcher-kva.example>"),
    ],
)
def test_a_normalised_mail_address_is_ascii_and_valid_in_a_mail_header(text: str, header: str) -> None:
    assert normalise(text) == header
    assert normalise(text).isascii()


def test_a_name_and_mail_address_of_more_than_998_characters_together_are_refused() -> None:
    assert split(f"{'V' * 982} <v@example.com>") == ("V" * 982, "v@example.com")
    with pytest.raises(ValueError, match="has 999 characters; use at most 998, including the name"):
        split(f"{'V' * 983} <v@example.com>")


@pytest.mark.parametrize(
    "piece",
    [" ", "a", "a ", "<", ">", '"', "a.", "@", "a@", "\u3000", "d-.", "\\", '\\"', "=?a?q?", "=?a?q?b?="],
)
def test_an_invalid_mail_address_of_any_length_is_refused_in_linear_time(piece: str) -> None:
    assert_refused_in_linear_time("{}!", piece, "is not a mail address")


@pytest.mark.parametrize("piece", ["\\", '\\"', "a", "=?a?q?", "=?a?q?b?="])
@pytest.mark.parametrize("form", ['"{}!', '"{}" <!>', '"{}" <a@example.com>', "{} <a@example.com>"])
def test_a_mail_address_with_an_invalid_or_too_long_name_is_refused_in_linear_time(
    piece: str, form: str
) -> None:
    assert_refused_in_linear_time(form, piece, r"is not a mail address|has \d+ characters")


def assert_refused_in_linear_time(form: str, piece: str, problem: str) -> None:
    def work(size: int) -> Callable[[], object]:
        text = form.format(piece * (size // len(piece)))
        return lambda: refuse(text)

    def refuse(text: str) -> None:
        with pytest.raises(ValueError, match=problem):
            split(text)

    assert_linear_time(work, 200_000)


def test_a_tab_is_a_control_character_and_a_soft_hyphen_is_not() -> None:
    assert has_control("\t")
    assert not has_control("zu\u00adsammen ü 漢 🎉")


def test_the_package_idna_is_imported_only_for_domains_with_international_letters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "idna", None)
    assert bare("V@xn--strae-oqa.example") == "v@xn--strae-oqa.example"
    assert spellings("v@xn--strae-oqa.example") == ("v@xn--strae-oqa.example",)
    with pytest.raises(ImportError):
        bare("v@only-here-ß.example")


@pytest.mark.parametrize(
    "recipient",
    [
        *("v@example.com", "v@xn--mnchen-3ya.example", "v@xn--53h.example", "v@xn--zzzzzz.example"),
        *("v@xn--.example", "android#xn--a:b", "arn:aws:sns:eu-central-1:1:xn--a"),
        *("+16175551234", "+525512345678", "+5411", "+54912345678901234"),
    ],
)
def test_a_recipient_that_is_not_a_valid_argentinian_number_has_one_spelling(
    recipient: str,
) -> None:
    assert spellings(recipient) == (recipient,)


@pytest.mark.parametrize(
    ("domain", "readable_domain"),
    [
        ("example.com", "example.com"),
        ("xn--strae-oqa.example", "straße.example"),
        ("xn--53h.example", "xn--53h.example"),
        ("xn--zzzzzz.example", "xn--zzzzzz.example"),
    ],
)
def test_an_encoded_international_domain_is_decoded_to_readable_letters_if_valid(
    domain: str, readable_domain: str
) -> None:
    assert readable(domain) == readable_domain
