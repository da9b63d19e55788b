"""The contract of a mail item: its headers and attachments."""

from typing import Any

import pytest

from mailroom.channels.mail.contract import listed, normalised
from tests.support.unit.contract import problem_of_mail, read_mail


@pytest.mark.parametrize(
    "headers",
    [{"X-Team": "post"}, {"X-A": "a" * 993}, {"x" * 126: "y"}, {f"X-{number}": "y" for number in range(12)}],
)
def test_a_producer_may_set_headers_of_a_mail(headers: dict[str, str]) -> None:
    assert read_mail(headers=headers).headers == headers


BROKEN = "is not a header value; use 1 to 995 printable ASCII characters"


@pytest.mark.parametrize(
    "value", ["a\r\nBcc: b@example.com", "a\nb", "a\rb", "", "a" * 996, "ü", "a\tb", "a\n"]
)
def test_a_mail_with_an_invalid_header_value_is_refused(value: str) -> None:
    assert problem_of_mail(headers={"X-Team": value}) == ("headers.X-Team", BROKEN)


@pytest.mark.parametrize("name", ["", "X Team", "X:Team", "X\nTeam", "Ü", "x" * 127, "X-Team\n"])
def test_a_mail_with_an_invalid_header_name_is_refused(name: str) -> None:
    field, sentence = problem_of_mail(headers={name: "y"})
    assert field.startswith("headers.")
    assert "\n" not in field
    assert sentence == "is not a header's name; use printable ASCII without a colon or space"


@pytest.mark.parametrize(
    "name",
    [
        *("From", "TO", "cc", "Bcc", "Subject", "Reply-To", "Sender", "Return-Path", "Date", "Message-ID"),
        *("MIME-Version", "Content-Type", "Content-Transfer-Encoding", "X-SES-CONFIGURATION-SET"),
        *("X-Correlation-ID", "DKIM-Signature", "Received"),
        *("Resent-From", "ARC-Seal"),
    ],
)
def test_a_reserved_header_name_is_refused_in_upper_and_lower_case(name: str) -> None:
    for spelling in (name, name.lower(), name.upper()):
        sentence = "is a reserved header; use an attribute of the item, such as subject, or another name"
        assert problem_of_mail(headers={spelling: "y"}) == (f"headers.{spelling}", sentence)


@pytest.mark.parametrize("name", ["List-Unsubscribe", "list-unsubscribe-post", "LIST-UNSUBSCRIBE"])
def test_a_producer_may_set_list_unsubscribe_headers_only_in_mails_without_a_topic(name: str) -> None:
    assert read_mail(headers={name: "<mailto:no@example.com>"}).headers == {name: "<mailto:no@example.com>"}
    fault = (f"headers.{name}", "is set by Mailroom in a mail with a topic; remove it or the topic")
    assert (
        problem_of_mail(topic="followers", headers={"X-Team": "post", name: "<mailto:no@example.com>"})
        == fault
    )


def test_a_producer_may_set_list_id_and_list_help_headers_even_in_a_mail_with_a_topic() -> None:
    headers = {"List-Id": "<followers.example.com>", "List-Help": "<https://example.com>"}
    assert read_mail(topic="followers", headers=headers).headers == headers


@pytest.mark.parametrize("value", [5, {"a": "b"}, None, ["a"]])
def test_a_header_value_that_is_not_a_string_is_refused(value: Any) -> None:
    assert problem_of_mail(headers={"X-Team": value})[0] == "headers.X-Team"
    assert problem_of_mail(headers={"X-Team": value})[1].startswith("is not a string; use a string")


def test_a_header_given_twice_in_different_case_is_refused() -> None:
    fault = ("headers", "contains a name twice, in upper and lower case; use it once")
    assert problem_of_mail(headers={"X-Team": "a", "x-team": "b"}) == fault


def test_a_mail_with_thirteen_headers_is_refused() -> None:
    headers = {f"X-{number}": "y" for number in range(13)}
    assert problem_of_mail(headers=headers) == ("headers", "has 13 entries; use at most 12")


def test_an_attachment_may_be_a_reference_with_a_filename_and_a_content_type() -> None:
    bill = {"ref": "s3://bucket/bill.pdf", "filename": "Bill.pdf", "content_type": "application/pdf"}
    (attachment,) = read_mail(attachments=[bill]).attachments
    assert (attachment.ref, attachment.filename) == ("s3://bucket/bill.pdf", "Bill.pdf")
    assert attachment.content_type == "application/pdf"


def test_a_mail_with_more_than_twenty_attachments_is_refused() -> None:
    fault = ("attachments", "expected a list of length <= 20")
    assert problem_of_mail(attachments=[{"ref": "s3://bucket/a"}] * 21) == fault


def test_an_attachment_with_an_unknown_attribute_is_refused() -> None:
    field, sentence = problem_of_mail(attachments=[{"ref": "s3://bucket/a", "name": "b"}])
    assert field == "attachments[0]"
    assert "name" in sentence


@pytest.mark.parametrize(("value", "expected"), [(None, []), ("a", ["a"]), (["a", "b"], ["a", "b"])])
def test_an_attribute_with_one_address_or_several_is_read_as_a_list_of_addresses(
    value: Any, expected: list[str]
) -> None:
    assert listed(value) == expected


def test_the_addresses_of_a_mail_keep_their_order_when_they_are_normalised() -> None:
    addresses = ["A <a@example.com>", "b@bücher.example"]
    assert normalised("to", addresses) == ["A <a@example.com>", "b@xn--bcher-kva.example"]
