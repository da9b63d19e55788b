"""Mail addresses: what SES takes, and nothing that could leave its header line."""

import time

import pytest

from mailroom.address import has_control, normalise, split

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
        ("<vincent@example.com>", "", "vincent@example.com"),
        ("vincent@münchen.example", "", "vincent@xn--mnchen-3ya.example"),
        (f"{LOCAL_64}@example.com", "", f"{LOCAL_64}@example.com"),
        ("Vincent@Example.COM", "", "Vincent@Example.COM"),
    ],
)
def test_an_address_comes_apart_into_name_and_ascii_address(text: str, name: str, address: str) -> None:
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
        ("a@" + "d.".join([""] + ["d" * 60] * 4) + "example", NO_DOMAIN),
    ],
)
def test_what_is_no_address_is_told_what_would_be(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="is not a mail address") as caught:
        split(text)
    assert str(caught.value) == problem


@pytest.mark.parametrize("break_", ["\n", "\r", "\r\n", "\0", "\x7f", "\x85", "\u2028", "\u2029", "\t"])
@pytest.mark.parametrize(
    "text", ["a@example.com{}Bcc: b@example.com", "A{}B <a@example.com>", "a@example.com{}"]
)
def test_an_address_with_a_line_break_or_control_character_is_refused(text: str, break_: str) -> None:
    with pytest.raises(
        ValueError, match="holds a line break or control character; use one line of plain text"
    ):
        split(text.format(break_))


def test_an_address_of_254_characters_is_taken_and_one_of_255_is_not() -> None:
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
def test_a_normalised_address_is_fit_for_a_header(text: str, header: str) -> None:
    assert normalise(text) == header
    assert normalise(text).isascii()


def test_a_name_fits_into_a_line_of_a_header_with_its_address() -> None:
    assert split(f"{'V' * 982} <v@example.com>") == ("V" * 982, "v@example.com")
    with pytest.raises(ValueError, match="has 999 characters; use at most 998, the name included"):
        split(f"{'V' * 983} <v@example.com>")


@pytest.mark.parametrize("piece", [" ", "a", "a ", "<", ">", '"', "a.", "@", "a@", "\u3000", "d-."])
def test_however_long_a_wrong_address_is_it_is_refused_at_once(piece: str) -> None:
    text = piece * (200_000 // len(piece)) + "!"
    started = time.process_time()
    with pytest.raises(ValueError, match="is not a mail address"):
        split(text)
    assert time.process_time() - started < 1


def test_a_tab_and_a_soft_hyphen_are_told_apart() -> None:
    assert has_control("\t")
    assert not has_control("zu\u00adsammen ü 漢 🎉")
