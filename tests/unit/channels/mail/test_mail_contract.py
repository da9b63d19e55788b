"""The contract of a mail item: its recipients and content."""

from typing import Any

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.message.message import parse
from tests.support.unit.contract import problem_of_mail, read_mail, some


def test_an_item_with_only_an_address_and_variables_is_a_valid_mail_from_a_template() -> None:
    message = parse(
        {
            "id": "m-1",
            "event_type": "mail",
            "email": "vincent@example.com",
            "first_name": "Vincent",
            "last_name": "van Gogh",
        },
        CONTRACTS,
    )
    assert message.recipient == "vincent@example.com"
    assert message.kind == "template"
    assert message.lane == "normal"
    assert message.variables["first_name"] == "Vincent"


def test_the_attribute_to_takes_precedence_over_email() -> None:
    assert read_mail(to="a@example.com", email="b@example.com").recipient == "a@example.com"


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "plaintext"),
        ({"html": "<p>Hi</p>"}, "html"),
        ({"html": "<p>Hi</p>", "text": ...}, "html"),
        ({"text": ..., "subject": ..., "template": "welcome"}, "template"),
        ({"text": ..., "subject": ...}, "template"),
    ],
)
def test_a_mails_content_is_plain_text_html_or_a_template(changes: dict[str, Any], kind: str) -> None:
    assert read_mail(**changes).kind == kind


@pytest.mark.parametrize(
    "changes", [{"to": ...}, {"to": ""}, {"to": []}, {"to": None}, {"to": ..., "email": ""}]
)
def test_a_mail_without_a_recipient_is_refused(changes: dict[str, Any]) -> None:
    assert problem_of_mail(**changes) == (
        "to",
        "is missing; set `to` (or `email`) to one address or a list of them",
    )


def test_a_mail_may_have_fifty_recipients() -> None:
    assert len(read_mail(to=some(50)).recipient) == 50
    assert len(read_mail(to=some(20), cc=some(20), bcc=some(10)).recipient) == 20


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"to": some(51)}, "to"),
        ({"to": ..., "email": some(51)}, "email"),
        ({"to": some(1), "cc": some(50)}, "to"),
        ({"to": some(20), "cc": some(20), "bcc": some(11)}, "to"),
    ],
)
def test_a_mail_to_fifty_one_recipients_is_refused(changes: dict[str, Any], field: str) -> None:
    assert problem_of_mail(**changes) == (field, "has 51 recipients, including cc and bcc; use at most 50")


def test_a_mail_with_fifty_one_reply_to_addresses_is_refused() -> None:
    assert problem_of_mail(reply_to=some(51)) == ("reply_to", "has 51 addresses; use at most 50")


WRONG = "is not a mail address; use name@domain.example"


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"to": "vincent"}, "to", f"'vincent' {WRONG}"),
        ({"to": ["a@example.com", "vincent"]}, "to[1]", f"'vincent' {WRONG}"),
        ({"to": ["a@example.com", ""]}, "to[1]", f"'' {WRONG}"),
        ({"to": ..., "email": "vincent"}, "email", f"'vincent' {WRONG}"),
        ({"cc": "vincent"}, "cc", f"'vincent' {WRONG}"),
        ({"bcc": ["vincent", "theo"]}, "bcc[0]", f"'vincent' {WRONG}"),
        ({"reply_to": "vincent"}, "reply_to", f"'vincent' {WRONG}"),
        ({"from": "vincent"}, "from", f"'vincent' {WRONG}"),
        ({"to": "a@localhost"}, "to", "'a@localhost' is not a mail address: its domain is not valid; use"),
    ],
)
def test_an_invalid_address_is_refused_with_its_field_and_index(
    changes: dict[str, Any], field: str, reason: str
) -> None:
    place, sentence = problem_of_mail(**changes)
    assert place == field
    assert sentence.startswith(reason)


@pytest.mark.parametrize("field", ["to", "email", "cc", "bcc", "reply_to", "from"])
@pytest.mark.parametrize("break_", ["\r\n", "\n", "\r"])
def test_an_address_with_a_line_break_is_refused(field: str, break_: str) -> None:
    changes = {"to": ...} if field == "email" else {}
    place, sentence = problem_of_mail(**{**changes, field: f"a@example.com{break_}Bcc: b@example.com"})
    assert place == field
    assert sentence.endswith("holds a line break or control character; use one line of plain text")


def test_the_error_quotes_only_a_part_of_a_long_invalid_address() -> None:
    assert len(problem_of_mail(to="x" * 5000)[1]) < 200


@pytest.mark.parametrize("break_", ["\r\n", "\n", "\r", "\u2028"])
def test_a_subject_with_a_line_break_is_refused(break_: str) -> None:
    assert problem_of_mail(subject=f"Hello{break_}Bcc: b@example.com") == (
        "subject",
        "holds a line break or control character; use one line of plain text",
    )


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"subject": ...}, "subject", "is missing, but text or html is set; add it, or use a template"),
        ({"text": ...}, "subject", "is set without text or html; add one, or use a template"),
        ({"template": "welcome"}, "template", "is not allowed together with text or html; use only one"),
    ],
)
def test_incomplete_or_contradictory_content_of_a_mail_is_refused(
    changes: dict[str, Any], field: str, sentence: str
) -> None:
    assert problem_of_mail(**changes) == (field, sentence)


def test_a_part_of_a_mails_content_may_be_in_the_object_that_payload_ref_names() -> None:
    assert read_mail(subject="Hello", text=..., payload_ref="s3://bucket/key").subject == "Hello"


@pytest.mark.parametrize("name", ["../secrets", "_shared", "a/b", "", "a b", "x" * 65, ".", "a\n", "ü"])
def test_an_invalid_template_name_is_refused(name: str) -> None:
    fault = ("template", "is not a template's name; use letters, digits, - and _")
    assert problem_of_mail(template=name, text=..., subject=...) == fault
