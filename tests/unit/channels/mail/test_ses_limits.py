"""Limits of mails, compared with botocore's model of SES v2.

An update of botocore that changes a limit fails these tests. The functions do not load the model, which takes
longer than sending a mail."""

import re
from typing import Any

import pytest
from botocore.session import get_session

from mailroom.channels.mail import contract
from mailroom.channels.mail.contract import (
    MAX_FILENAME,
    MAX_HEADER,
    MAX_MEDIA_TYPE,
    MAX_OWN_HEADERS,
    UNSUBSCRIBE,
    UNSUBSCRIBE_POST,
    Attachment,
)
from mailroom.errors import Invalid
from mailroom.message.message import MAX_ID_BYTES, Reference
from mailroom.recipients.unsubscribe_links import MAX_LINK, ONE_CLICK
from tests.support.unit.contract import problem_of_mail, read_mail

MODEL: Any = get_session().get_service_model("sesv2")


def limits(name: str) -> dict[str, Any]:
    return dict(MODEL.shape_for(name).metadata)


def test_the_limits_of_headers_equal_those_of_the_ses_api_model() -> None:
    assert limits("MessageHeaderList") == {"min": 0, "max": MAX_OWN_HEADERS + 3}
    name, value = limits("MessageHeaderName"), limits("MessageHeaderValue")
    assert contract.HEADER_NAME.pattern == f"{name['pattern'][1:-2]}{{{name['min']},{name['max']}}}"
    assert contract.HEADER_VALUE.pattern == f"{value['pattern'][:-1]}{{{value['min']},{value['max']}}}"


def test_the_length_limit_of_a_header_equals_that_in_the_documentation_of_the_ses_api_model() -> None:
    words = MODEL.shape_for("MessageHeader").members["Value"].documentation
    found = re.search(
        r"combined length of the header name and value must not exceed ([0-9]+) characters", words
    )
    assert found is not None
    assert int(found[1]) == MAX_HEADER


def test_the_limits_of_attachments_equal_those_of_the_ses_api_model() -> None:
    assert limits("AttachmentFileName") == {"max": MAX_FILENAME}
    assert limits("AttachmentContentType") == {"min": 1, "max": MAX_MEDIA_TYPE}
    assert limits("AttachmentContentId") == {"min": 1, "max": 78}
    Attachment("a", content_id="x" * 78).check("a")
    with pytest.raises(Invalid, match="must be 1 to 78 letters"):
        Attachment("a", content_id="x" * 79).check("a")


def test_the_tags_of_a_message_with_the_longest_id_are_within_the_limits_of_ses_and_resend() -> None:
    words = MODEL.shape_for("MessageTag").members["Value"].documentation
    assert "no more than 256 characters" in words
    for name, value in Reference("\U0001f4ee" * (MAX_ID_BYTES // 4), attempt=10**9).tags.items():
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,256}", name)
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,256}", value)


def test_the_longest_headers_that_mailroom_adds_are_within_the_length_limit_of_a_header() -> None:
    reference = Reference("\U0001f4ee" * (MAX_ID_BYTES // 4), attempt=10**9).text
    contract.check_headers(
        {"X-Team": reference, UNSUBSCRIBE: f"<{'x' * MAX_LINK}>", UNSUBSCRIBE_POST: ONE_CLICK}
    )
    with pytest.raises(Invalid, match="has 997 characters"):
        contract.check_headers({UNSUBSCRIBE: f"<{'x' * (MAX_LINK + 1)}>"})


@pytest.mark.parametrize("size", range(20, 60, 3))
def test_the_header_of_intended_recipients_is_within_the_limit_at_any_length_of_addresses(size: int) -> None:
    mail = read_mail(to=[f"{'r' * size}{number:03}@example.com" for number in range(50)])
    contract.check_headers(mail.redirected("dev@example.com").headers)


@pytest.mark.parametrize(("name", "size"), [("X-Team", 991), ("X-" + "T" * 124, 871), ("References", 995)])
def test_a_header_that_is_too_long_with_its_name_is_refused(name: str, size: int) -> None:
    count = len(name) + size
    sentence = f"has {count} characters in its name and value together; use at most 996"
    assert problem_of_mail(headers={name: "x" * size}) == (f"headers.{name}", sentence)
    assert read_mail(headers={name: "x" * (996 - len(name))})


def test_an_address_with_too_long_an_encoded_name_is_refused_and_the_error_names_its_field() -> None:
    long = f"{'山' * 70} <vincent@example.com>"
    place, sentence = problem_of_mail(to=["a@example.com", long])
    assert place == "to[1]"
    assert re.search(r"has 3\d\d characters with its encoded name; use at most 320$", sentence)
    for name in ("cc", "bcc", "reply_to", "from"):
        assert problem_of_mail(**{name: long})[0] == name


@pytest.mark.parametrize(
    "kind",
    [
        *(
            "text/csv",
            "application/x-bill",
            "application/vnd.ms-excel.sheet.macroEnabled.12",
            "image/svg+xml",
        ),
        *("text/calendar; method=REQUEST", 'text/plain;charset="utf-8"; format=flowed', "TEXT/HTML"),
    ],
)
def test_an_attachments_content_type_is_a_type_and_a_subtype_with_optional_parameters(kind: str) -> None:
    assert (
        read_mail(attachments=[{"ref": "s3://bucket/a", "content_type": kind}]).attachments[0].content_type
        == kind
    )


@pytest.mark.parametrize(
    "kind",
    [
        *(
            "pdf",
            ".pdf",
            "text/",
            "/csv",
            "text/csv/",
            "text csv",
            "text /csv",
            "-a/b",
            "ü/b",
            "text/csv;",
            "a;b/c",
        ),
        *(
            "text/csv; header",
            'text/csv; header="',
            "text/csv\n",
            "text/csv; a=b\r\nBcc: c",
            f"text/{'x' * 74}",
        ),
    ],
)
def test_a_mail_with_an_attachment_of_invalid_content_type_is_refused_when_it_is_parsed(kind: str) -> None:
    fault = ("attachments[0].content_type", "is not a media type; use one like application/pdf")
    assert problem_of_mail(attachments=[{"ref": "s3://bucket/a", "content_type": kind}]) == fault


@pytest.mark.parametrize("filename", ["a\nb", "a" * 256])
def test_a_mail_with_an_invalid_attachment_filename_is_refused_when_it_is_parsed(filename: str) -> None:
    sentence = "has control characters, or not 1 to 255 characters; use another name"
    fault = ("attachments[0].filename", sentence)
    assert problem_of_mail(attachments=[{"ref": "s3://bucket/a", "filename": filename}]) == fault
    assert problem_of_mail(attachments=[{"ref": "s3://bucket/"}]) == fault
