"""Files of a template, which are attached to each of its mails."""

import re
from pathlib import Path

import msgspec
import pytest

from mailroom.channels.mail.contract import Attachment
from mailroom.channels.mail.rendering import LoadedAttachment, MailRenderer
from mailroom.content.payloads import Payloads
from mailroom.content.templates import FRESH_SECONDS, Templates, Version, read_version
from mailroom.errors import Invalid
from tests.support.unit.shared import BUCKET, SENDER, TEMPLATES, Aws, mail
from tests.support.unit.shelf import Shelf

HTML = "<img src='cid:logo.png'>"
LOGO = LoadedAttachment("logo.png", "image/png", b"\x89PNG\xff", "logo.png")
TERMS = LoadedAttachment("terms.pdf", "application/pdf", b"%PDF")


@pytest.fixture
def templates_with_files(shelf: Shelf) -> Templates:
    shelf.put("a", subject="Hello", html=HTML)
    (shelf.root / "a/files").mkdir()
    (shelf.root / "a/files/logo.png").write_bytes(LOGO.content)
    (shelf.root / "a/files/terms.pdf").write_bytes(TERMS.content)
    return Templates(shelf.root)


def loaded(
    aws: Aws, templates: Templates, *attachments: Attachment, limit: int = 100, version: int | None = None
) -> list[LoadedAttachment]:
    payloads = Payloads(aws.s3, BUCKET)
    renderer = MailRenderer(templates, payloads, senders=[SENDER], max_attachment_bytes=limit)
    message = mail(
        template="a", template_version=version, attachments=[*attachments], subject=None, text=None
    )
    return renderer.render(message).attachments


def test_a_mail_attaches_the_files_of_its_template_and_each_image_gets_its_name_as_content_id(
    aws: Aws, templates_with_files: Templates
) -> None:
    assert loaded(aws, templates_with_files) == [LOGO, TERMS]


def test_the_attachments_of_a_mail_follow_the_files_of_its_template_and_share_the_limit(
    aws: Aws, templates_with_files: Templates
) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="bill.pdf", Body=b"1234567")
    bill = Attachment(ref=f"s3://{BUCKET}/bill.pdf")
    size = len(LOGO.content) + len(TERMS.content) + 7
    attached = loaded(aws, templates_with_files, bill, limit=size)
    assert [each.filename for each in attached] == ["logo.png", "terms.pdf", "bill.pdf"]
    with pytest.raises(Invalid, match=r"attachments\[0\].ref: has 7 bytes; use at most 6"):
        loaded(aws, templates_with_files, bill, limit=size - 1)


def test_a_mail_is_refused_if_its_html_shows_an_image_that_neither_mail_nor_template_has(
    aws: Aws, templates_with_files: Templates, shelf: Shelf
) -> None:
    (shelf.root / "a/files/logo.png").unlink()
    with pytest.raises(Invalid, match=r"the HTML refers to cid:logo\.png"):
        loaded(aws, Templates(shelf.root))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("setup.exe", r"files['setup.exe'].filename: .exe is refused by providers; send a link to the file"),
        ("große.png", r"files['große.png'].content_id: must be 1 to 78 letters, digits or .-_@ characters"),
        ("a\nb", r"files['a\nb'].filename: has control characters, or not 1 to 255 characters"),
    ],
)
def test_a_mail_is_refused_if_a_file_of_its_template_is_invalid_and_the_error_names_the_file(
    aws: Aws, templates_with_files: Templates, shelf: Shelf, name: str, fault: str
) -> None:
    (shelf.root / "a/files" / name).write_bytes(b"a")
    shelf.put("a", html=f"{HTML}<img src='cid:große.png'>" if "große" in name else HTML)
    with pytest.raises(Invalid, match=f"^{re.escape(fault)}"):
        loaded(aws, Templates(shelf.root))


def test_the_content_type_of_a_template_file_follows_from_its_last_extension(
    aws: Aws, templates_with_files: Templates, shelf: Shelf
) -> None:
    for name in ("prices.csv.gz", "prices.xlsx"):
        (shelf.root / "a/files" / name).write_bytes(b"a")
    kinds = {each.filename: each.content_type for each in loaded(aws, Templates(shelf.root))}
    assert kinds["prices.csv.gz"] == "application/gzip"
    assert kinds["prices.xlsx"] == "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def test_a_file_deleted_from_a_template_folder_is_not_attached_to_mails_a_second_later(
    shelf: Shelf, templates_with_files: Templates
) -> None:
    moment = [0.0]
    templates_with_files = Templates(shelf.root, clock=lambda: moment[0])
    assert [*templates_with_files.render("a", {}).attached] == ["logo.png", "terms.pdf"]
    (shelf.root / "a/files/terms.pdf").unlink()
    moment[0] = FRESH_SECONDS
    assert templates_with_files.render("a", {}).attached == {"logo.png": LOGO.content}


def test_a_mail_of_a_published_template_version_has_the_files_of_that_version(
    aws: Aws, tmp_path: Path
) -> None:
    parts = {"a/subject.txt": "Hello", "a/body.html": HTML}
    version = Version("mail", "a", 2, parts, {}, "arn:ci", "2026-11-25T00:00:00Z", {"logo.png": LOGO.content})
    content = msgspec.json.encode(version)
    assert read_version(content) == version
    aws.s3.put_object(Bucket=TEMPLATES, Key=version.key, Body=content)
    templates = Templates(tmp_path / "mail", Payloads(aws.s3, TEMPLATES))
    assert loaded(aws, templates, version=2) == [LOGO]


def test_a_template_file_with_the_name_of_a_template_part_is_attached_and_is_not_a_template(
    shelf: Shelf,
) -> None:
    shelf.put("a", subject="Hello", text="Hi")
    shelf.put("a/files", text="{{ broken")
    assert Templates(shelf.root).render("a", {}).attached == {"body.txt": b"{{ broken"}
    assert Templates(shelf.root).names("body.txt") == ["a"]
