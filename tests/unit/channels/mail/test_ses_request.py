"""Requests to Amazon SES v2."""

import base64
from itertools import product
from string import ascii_lowercase
from typing import Any

import pytest

from mailroom.channels.mail.contract import UNSUPPORTED, Attachment
from mailroom.errors import Invalid
from tests.support.unit.ses import Ses, prepared, problem_at_ses, ses_mail
from tests.support.unit.shared import BUCKET, SENDER, Aws, mail


def test_a_mail_becomes_one_complete_request_to_ses() -> None:
    correlation = base64.urlsafe_b64encode(b"m-1").decode().rstrip("=")
    assert prepared(html="<p>Hi</p>", headers={"X-Team": "post"}) == {
        "FromEmailAddress": SENDER,
        "Destination": {"ToAddresses": ["vincent@example.com"]},
        "Content": {
            "Simple": {
                "Subject": {"Data": "Hello", "Charset": "UTF-8"},
                "Body": {
                    "Html": {"Data": "<p>Hi</p>", "Charset": "UTF-8"},
                    "Text": {"Data": "Hi", "Charset": "UTF-8"},
                },
                "Headers": [
                    {"Name": "X-Correlation-ID", "Value": correlation},
                    {"Name": "X-Team", "Value": "post"},
                ],
            }
        },
        "EmailTags": [
            {"Name": "correlation", "Value": correlation},
            {"Name": "attempt", "Value": "1"},
            {"Name": "event_type", "Value": "mail"},
        ],
        "ConfigurationSetName": "mailroom-test",
    }


def test_to_cc_bcc_and_reply_to_addresses_get_the_matching_fields_of_ses() -> None:
    request = prepared(
        to=["a@example.com", "B <b@bücher.example>"],
        cc="c@example.com",
        bcc=["d@example.com"],
        reply_to="e@example.com",
    )
    assert request["Destination"] == {
        "ToAddresses": ["a@example.com", "B <b@xn--bcher-kva.example>"],
        "CcAddresses": ["c@example.com"],
        "BccAddresses": ["d@example.com"],
    }
    assert request["ReplyToAddresses"] == ["e@example.com"]


def test_the_attribute_email_contains_a_recipient_like_the_attribute_to() -> None:
    assert prepared(to=None, email="a@example.com")["Destination"] == {"ToAddresses": ["a@example.com"]}


def test_a_mail_without_content_is_rendered_from_the_default_template_and_its_variables() -> None:
    message = mail(to=None, email="v@example.com", subject=None, text=None)
    message.variables.update(first_name="Vincent", last_name="van Gogh")
    request = ses_mail(Ses()).prepare(message)
    simple = request["Content"]["Simple"]
    assert simple["Subject"]["Data"] == "Vincent, there is a message for you"
    assert set(simple["Body"]) == {"Html", "Text"}


@pytest.mark.parametrize(
    ("from_", "expected"),
    [
        (None, SENDER),
        ("post@mailroom.example", "post@mailroom.example"),
        ("Another Name <POST@mailroom.example>", "Another Name <post@mailroom.example>"),
        ("News <news@bücher.example>", "News <news@xn--bcher-kva.example>"),
    ],
)
def test_a_mail_is_sent_from_the_sender_in_its_item_or_else_from_the_stages_default_sender(
    from_: str | None, expected: str
) -> None:
    assert prepared(from_=from_)["FromEmailAddress"] == expected


def test_a_sender_unknown_to_the_stage_is_refused_and_the_error_lists_the_stages_senders() -> None:
    reason = problem_at_ses(from_="ceo@mailroom.example")
    assert reason.startswith("from: is not among this stage's senders; use one of ")
    assert "post@mailroom.example" in reason
    assert "news@xn--bcher-kva.example" in reason


def attached(
    aws: Aws, *attachments: dict[str, Any], limit: int = 1000, **content: Any
) -> list[dict[str, Any]]:
    aws.s3.put_object(Bucket=BUCKET, Key="bills/7.pdf", Body=b"%PDF")
    aws.s3.put_object(Bucket=BUCKET, Key="bills/noname", Body=b"abc")
    message = mail(attachments=[Attachment(**attributes) for attributes in attachments], **content)
    request = ses_mail(Ses(), aws.s3, limit).prepare(message)
    parts: list[dict[str, Any]] = request["Content"]["Simple"]["Attachments"]
    return parts


BASE64 = {"ContentTransferEncoding": "BASE64"}
BILL = f"s3://{BUCKET}/bills/7.pdf"


def test_an_attachments_filename_and_content_type_come_from_its_object_key(aws: Aws) -> None:
    assert attached(aws, {"ref": BILL}, {"ref": f"s3://{BUCKET}/bills/noname"}) == [
        {"FileName": "7.pdf", "ContentType": "application/pdf", "RawContent": b"%PDF", **BASE64},
        {"FileName": "noname", "ContentType": "application/octet-stream", "RawContent": b"abc", **BASE64},
    ]


@pytest.mark.parametrize("filename", ["//[.pdf", "http://[a.pdf", "data:text/html;a,b.pdf", "a.b//c.PDF"])
def test_an_attachments_filename_may_look_like_a_url(aws: Aws, filename: str) -> None:
    (part,) = attached(aws, {"ref": BILL, "filename": filename})
    assert (part["FileName"], part["ContentType"]) == (filename, "application/pdf")


def test_an_attachments_filename_and_content_type_may_override_the_object_key(aws: Aws) -> None:
    bill = {"ref": BILL, "filename": "Bill.PDF", "content_type": "application/x-bill"}
    (part,) = attached(aws, bill)
    assert (part["FileName"], part["ContentType"]) == ("Bill.PDF", "application/x-bill")


@pytest.mark.parametrize(
    ("attachment", "expected"),
    [
        (
            {"ref": f"s3://{BUCKET}/none"},
            f"attachments[0].ref: 's3://{BUCKET}/none' does not exist; put the object",
        ),
        (
            {"ref": "s3://elsewhere/a"},
            "attachments[0].ref: 's3://elsewhere/a' is outside the payload bucket; use",
        ),
    ],
)
def test_an_attachment_missing_or_outside_the_payload_bucket_is_refused_with_its_index(
    aws: Aws, attachment: dict[str, Any], expected: str
) -> None:
    with pytest.raises(Invalid) as caught:
        attached(aws, attachment)
    assert str(caught.value).startswith(expected)


def test_the_size_limit_applies_to_the_sum_of_all_attachments_of_a_mail(aws: Aws) -> None:
    assert len(attached(aws, {"ref": BILL}, {"ref": BILL}, limit=8)) == 2
    with pytest.raises(Invalid, match=r"^attachments\[1\]\.ref: has 4 bytes; use at most 3$"):
        attached(aws, {"ref": BILL}, {"ref": BILL}, limit=7)


LOGO = {"ref": BILL, "filename": "logo.png", "content_id": "logo"}


def test_an_attachment_that_the_html_shows_as_an_image_is_sent_inline(aws: Aws) -> None:
    (part,) = attached(aws, LOGO, html="<img src='cid:logo'>")
    assert part == {
        "FileName": "logo.png",
        "ContentType": "image/png",
        "RawContent": b"%PDF",
        "ContentId": "logo",
        "ContentDisposition": "INLINE",
        **BASE64,
    }


@pytest.mark.parametrize(
    "html", ['<img src="cid:logos">', "<td background=cid:Logo>", "<p style='background: url(cid:x)'>"]
)
def test_a_mail_is_refused_if_the_html_shows_an_image_that_is_not_attached(aws: Aws, html: str) -> None:
    with pytest.raises(Invalid, match=r"the HTML refers to cid:\w+, but no attachment has this content_id"):
        attached(aws, LOGO, html=html)


@pytest.mark.parametrize("content_id", ["", "a b", "<logo>", "x" * 79, "lo\ngo", "ü"])
def test_an_attachment_with_an_invalid_content_id_is_refused(content_id: str) -> None:
    with pytest.raises(Invalid, match=r"attachments\[0\].content_id: must be 1 to 78 letters"):
        mail(attachments=[Attachment(ref=BILL, content_id=content_id)]).check()


SES_UNSUPPORTED = """
ade adp app asp bas bat cer chm cmd com cpl crt csh der exe fxp gadget hlp hta inf ins isp its js
jse ksh lib lnk mad maf mag mam maq mar mas mat mau mav maw mda mdb mde mdt mdw mdz msc msh msh1
msh2 mshxml msh1xml msh2xml msi msp mst ops pcd pif plg prf prg reg scf scr sct shb shs sys ps1
ps1xml ps2 ps2xml psc1 psc2 tmp url vb vbe vbs vps vsmacros vss vst vsw vxd ws wsc wsf wsh xnk
"""
"""List of unsupported attachment types in the guide of SES."""


@pytest.mark.parametrize("extension", SES_UNSUPPORTED.split())
def test_an_attachment_with_an_extension_that_ses_does_not_send_is_refused(extension: str) -> None:
    for attachment in (
        Attachment(ref=f"s3://{BUCKET}/bills/a.{extension}"),
        Attachment(ref=BILL, filename=f"Bill.pdf.{extension.upper()}"),
    ):
        with pytest.raises(Invalid, match=rf"attachments\[1\].filename: (?i:\.{extension}) is refused"):
            mail(attachments=[Attachment(ref=BILL), attachment]).check()


def test_an_attachment_may_have_any_extension_of_up_to_three_letters_that_ses_sends() -> None:
    short = ["".join(letters) for size in (1, 2, 3) for letters in product(ascii_lowercase, repeat=size)]
    unsupported = {extension for extension in short if UNSUPPORTED.search(f"a.{extension}")}
    assert unsupported == set(SES_UNSUPPORTED.split()) & set(short)


@pytest.mark.parametrize("filename", ["js", "exe.pdf", "a.json", "a.jsx", "a.exe.zip", "a.url.txt"])
def test_an_unsupported_extension_is_allowed_in_the_middle_of_an_attachments_filename(filename: str) -> None:
    mail(attachments=[Attachment(ref=BILL, filename=filename)]).check()


def test_a_mail_with_two_images_that_have_the_same_content_id_is_refused() -> None:
    images = [Attachment(ref=BILL, content_id="logo")] * 2
    with pytest.raises(Invalid, match=r"attachments\[1\].content_id: logo is used by another attachment"):
        mail(attachments=images).check()
