"""Media types of attached files, which do not depend on the machine."""

import mimetypes

import pytest

from mailroom.channels.mail.contract import UNSUPPORTED, Attachment
from mailroom.channels.mail.media_types import TYPES, type_of


@pytest.mark.parametrize(
    ("filename", "kind"),
    [
        ("a.pdf", "application/pdf"),
        ("A.PDF", "application/pdf"),
        ("a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("invite.ics", "text/calendar"),
        ("a.webp", "image/webp"),
        ("a.vcf", "text/vcard"),
        ("report.csv.gz", "application/gzip"),
        ("report.tar.gz", "application/gzip"),
        ("report.pdf.zst", "application/zstd"),
        ("report.2026.csv", "text/csv"),
        ("Grüße.txt", "text/plain"),
        *((name, "application/octet-stream") for name in ("pdf", ".pdf", "a.", "a.unknown", "a.pdf.", "a")),
    ],
)
def test_the_last_extension_of_a_file_determines_its_media_type(filename: str, kind: str) -> None:
    assert type_of(filename) == kind


def test_mime_types_that_are_registered_on_the_machine_do_not_change_the_media_type_of_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = {extension: type_of(f"a{extension}") for extension in (*TYPES, ".unknown")}
    for machine in (mimetypes.MimeTypes(filenames=()), mimetypes.MimeTypes(filenames=())):
        machine.add_type("application/x-other", ".pdf")
        machine.add_type("application/x-other", ".unknown")
        monkeypatch.setattr(mimetypes, "_db", machine)
        assert {extension: type_of(f"a{extension}") for extension in expected} == expected


@pytest.mark.parametrize("extension", TYPES)
def test_a_mail_may_have_an_attachment_of_each_extension_and_type_in_the_table_of_media_types(
    extension: str,
) -> None:
    assert extension == extension.lower()
    assert not UNSUPPORTED.search(f"a{extension}")
    Attachment("a", f"a{extension}", TYPES[extension]).check("attachments[0]")
