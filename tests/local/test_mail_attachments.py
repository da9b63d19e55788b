"""Attachments by the real adapters and the simulators: the bytes that a recipient's mail program reads."""

import base64
import io
import json
from collections.abc import Callable, Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from itertools import count
from typing import Any

import pytest
from msgspec import structs

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.mail.contract import Attachment, Mail
from mailroom.channels.mail.rendering import MailRenderer
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Templates
from mailroom.message.message import parse
from mailroom.message.outcome import Misconfigured, Outcome, Sent
from mailroom.providers.resend.sender import Resend, ResendMail
from mailroom.providers.ses.sender import SesMail
from mailroom_local.aws import LocalSession, fetch, patient
from mailroom_local.providers.http import SimulatorServer
from mailroom_local.providers.inbox import InboxStore
from mailroom_local.providers.resend_mail import SECRET, ResendSimulator
from mailroom_local.providers.server import ProviderServer
from mailroom_local.providers.ses import mime_of
from tests.support.local.served import served
from tests.support.local.ses import Emulator
from tests.support.unit.shared import BUCKET
from tests.support.unit.shelf import OURS

PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\r\n1 0 obj<<>>endobj\r%%EOF"
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff"
FILES = {
    "42.pdf": PDF,
    "logo.png": PNG,
    "every.bin": bytes(range(256)) * 300,
    "Grüße.txt": "Grüße\n".encode(),
    "lines.txt": b".\n..\r\nFrom a\n\r\n--\n" + b"x" * 2000,
    "empty.csv": b"",
    "forwarded.eml": b"Subject: Hello\r\n\r\nGr\xfc\xdfe\r\n",
}
NUMBERS = count()
LOGO = Attachment(f"s3://{BUCKET}/logo.png", content_id="logo@1")


class Bucket:
    """The payload bucket, with FILES."""

    def get_object(self, *, Key: str, **_: Any) -> dict[str, Any]:  # noqa: N803 - boto3's name
        return {"Body": io.BytesIO(FILES[Key]), "ContentLength": len(FILES[Key])}


def renderer() -> MailRenderer:
    bucket: Any = Bucket()
    return MailRenderer(
        Templates(OURS),
        Payloads(bucket, BUCKET),
        senders=["mailroom@example.com"],
        max_attachment_bytes=1_000_000,
    )


def mail_with(*attachments: Attachment, **more: Any) -> Mail:
    item = {
        "id": f"m-{next(NUMBERS)}",
        "event_type": "mail",
        "to": "ada@example.com",
        "subject": "Hello",
        "text": "Hi",
    }
    message = parse({**item, **more}, CONTRACTS)
    assert isinstance(message, Mail)
    return structs.replace(message, attachments=[*attachments])


def ses_without_client() -> SesMail:
    client: Any = None
    return SesMail(client, renderer(), "set")


def as_sent(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request as JSON, in which bytes are in Base64."""
    whole: dict[str, Any] = json.loads(json.dumps(request, default=lambda it: base64.b64encode(it).decode()))
    return whole


def parsed_mail(request: dict[str, Any]) -> EmailMessage:
    """Return the mail as the recipient's mail program reads it."""
    message = message_from_bytes(
        mime_of(as_sent(request)).as_bytes(policy=policy.SMTP), policy=policy.default
    )
    assert isinstance(message, EmailMessage)
    assert [*message.walk()][-1].defects == []
    return message


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content_id", [None, "part"])
def test_an_attachment_of_a_mail_by_ses_arrives_unchanged(name: str, content_id: str | None) -> None:
    attachment = Attachment(f"s3://{BUCKET}/{name}", content_id=content_id)
    message = parsed_mail(
        ses_without_client().prepare(mail_with(attachment, html='<img src="cid:part">' * bool(content_id)))
    )
    (part,) = [each for each in message.walk() if each.get_filename() == name]
    assert part.get_payload(decode=True) == FILES[name]
    assert part.get_content_disposition() == ("inline" if content_id else "attachment")
    assert part["content-id"] == (content_id and f"<{content_id}>")


def test_an_attachment_that_ses_gets_without_an_encoding_becomes_7bit_and_loses_its_high_bits() -> None:
    request = ses_without_client().prepare(mail_with(Attachment(f"s3://{BUCKET}/42.pdf")))
    (part,) = request["Content"]["Simple"]["Attachments"]
    del part["ContentTransferEncoding"], part["ContentType"]
    (pdf,) = parsed_mail(request).iter_attachments()
    assert (pdf["content-transfer-encoding"], pdf.get_content_type()) == ("7bit", "application/pdf")
    broken = pdf.get_payload(decode=True)
    assert isinstance(broken, bytes)
    assert broken.startswith(b"%PDF-1.7\r\n%bcOS\r\n")


def test_an_inline_image_is_related_to_the_html_and_a_file_is_attached_to_the_mail() -> None:
    message = parsed_mail(
        ses_without_client().prepare(
            mail_with(Attachment(f"s3://{BUCKET}/42.pdf"), LOGO, html='<img src="cid:logo@1">')
        )
    )
    assert [each.get_content_type() for each in message.walk()] == [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
        "application/pdf",
    ]
    html = message.get_body(("html",))
    assert html is not None
    assert html.get_content().strip() == '<img src="cid:logo@1">'


class Provider:
    """A simulator, called by the adapter."""

    def __init__(self, send: Callable[[Mail], Outcome], inbox: Callable[[], list[dict[str, Any]]]) -> None:
        self.send, self.inbox = send, inbox


@pytest.fixture(scope="module", params=["ses", "resend"])
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    if request.param == "resend":
        store = InboxStore()
        simulator = ResendSimulator(store)
        with served(SimulatorServer(0, simulator)) as url:
            resend = ResendMail(lambda: Resend(SECRET["api_key"], f"{url}/resend", 5), renderer(), BUCKET)
            yield Provider(
                lambda each: resend.open().submit(resend.prepare(each)),
                lambda: [vars(each) for each in store.all()],
            )
        return
    with served(Emulator()) as aws, served(ProviderServer(0, aws)) as url:
        client = LocalSession().client("sesv2", endpoint_url=url, config=patient())
        ses = SesMail(client, renderer(), "known")
        yield Provider(lambda each: ses.submit(ses.prepare(each)), lambda: list(fetch(f"{url}/inbox")))
        client.close()


def test_the_inbox_of_each_simulator_has_the_unchanged_bytes_of_a_mails_attachments(
    provider: Provider,
) -> None:
    files = [Attachment(f"s3://{BUCKET}/{name}") for name in FILES if name != "logo.png"]
    assert isinstance(provider.send(mail_with(*files, LOGO, html='<img src="cid:logo@1">')), Sent)
    kept = provider.inbox()[-1]
    shown = {each["name"]: each for each in kept["content"]["attachments"]}
    assert {name: each["size"] for name, each in shown.items()} == {
        name: len(content) for name, content in FILES.items()
    }
    urls = {name: base64.b64decode(each["url"].partition(",")[2]) for name, each in shown.items()}
    assert urls == FILES
    assert shown["logo.png"]["url"].startswith("data:image/png;base64,")
    assert {each["content_id"] for each in shown.values()} == {"", "logo@1"}


@pytest.mark.parametrize("extension", ["ade", "CRT", "js", "url", "msh1xml", "xnk"])
def test_both_simulators_refuse_the_file_types_that_their_providers_refuse(
    provider: Provider, extension: str
) -> None:
    before = len(provider.inbox())
    for name in (f"a.{extension}", f"a.pdf.{extension}"):
        outcome = provider.send(mail_with(Attachment(f"s3://{BUCKET}/42.pdf", filename=name)))
        # The contract refuses the name first, so the words of this error reach no user.
        assert isinstance(outcome, Misconfigured)
    assert len(provider.inbox()) == before
    assert isinstance(
        provider.send(mail_with(Attachment(f"s3://{BUCKET}/42.pdf", filename=f"{extension}.zip"))), Sent
    )
