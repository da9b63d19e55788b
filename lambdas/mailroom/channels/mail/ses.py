"""Mail by Amazon SES v2."""

import mimetypes
import time
from collections.abc import Container, Sequence
from email.utils import formataddr
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.aws import clients
from mailroom.aws.secret import CachedSecret, unreadable
from mailroom.channels.mail.contract import (
    UNSUBSCRIBE,
    UNSUBSCRIBE_POST,
    Attachment,
    Mail,
    listed,
    normalised,
)
from mailroom.channels.provider import ask_aws, refused
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Content, Templates, templates_of
from mailroom.environment import MailSender
from mailroom.errors import Invalid
from mailroom.message import address
from mailroom.message.message import MAX_SUBJECT, encoded
from mailroom.message.outcome import (
    DayUsedUp,
    Evidence,
    Misconfigured,
    NotReady,
    Outcome,
    Refusal,
    Sent,
    Unknowable,
)
from mailroom.recipients.unsubscribe_links import ONE_CLICK, InvalidSigningKey, Links

if TYPE_CHECKING:
    from types_boto3_sesv2 import SESV2Client

Request = dict[str, Any]
"""The arguments of `send_email`."""

LINK = "unsubscribe_url"
"""The template's variable."""

_ONE_ALONE = (
    "is given to a mail with a `topic` and one recipient, cc and bcc counted; make it such a mail, or let "
    "the template ask `{% if unsubscribe_url is defined %}`"
)


class SesMail:
    """SES has no idempotency key and no look-up, so `submit` is called once an attempt and never retried."""

    provider = "ses"
    account = None
    contract = Mail

    def __init__(
        self,
        client: "SESV2Client",
        templates: Templates,
        payloads: Payloads,
        *,
        senders: Sequence[str],
        configuration_set: str,
        max_attachment_bytes: int,
        links: Links | None = None,
        strict: bool = False,
    ) -> None:
        """`links` may be None where no mail has a topic. `strict`: what nobody uses is refused."""
        self._client = client
        self._links = links
        self._strict = strict
        self._templates = templates
        self._payloads = payloads
        self._default_sender = address.normalise(senders[0])
        # SES distinguishes upper and lower case in an identity's local part; items need not.
        self._senders = {bare.lower(): bare for bare in (address.split(each)[1] for each in senders)}
        self._configuration_set = configuration_set
        self._max_attachment_bytes = max_attachment_bytes

    @classmethod
    def of(cls, settings: MailSender) -> "SesMail":
        secret = CachedSecret(clients.secretsmanager(), settings.unsubscribe_secret_arn, time.time)
        return cls(
            clients.sesv2(settings.submit_seconds),
            templates_of(settings),
            Payloads(clients.s3(), settings.payload_bucket),
            senders=settings.mail_senders,
            configuration_set=settings.configuration_set,
            max_attachment_bytes=settings.max_attachment_bytes,
            links=Links(secret, settings.unsubscribe_url),
            strict=settings.unknown == "refuse",
        )

    def prepare(self, message: Mail) -> Request:
        """The whole request: addresses, rendered content, headers, tags, attachments. Raises Invalid, and
        NotReady where the key that signs links for opting out cannot be read.

        A mail with a topic and one addressee carries a link for opting out: in its headers (RFC 8058), and as
        the template's variable `unsubscribe_url`, whatever the item calls so itself. One to several has
        neither: all would get the same link, and one of them would choose for the others.
        """
        try:
            link = self._link(message)
        except InvalidSigningKey as fault:
            raise NotReady(Misconfigured(str(fault))) from None
        except (ClientError, BotoCoreError) as error:
            raise unreadable("the secret of the links for opting out", error) from None
        return self._request(message, link)

    def _request(self, message: Mail, link: str | None) -> Request:
        reference = message.reference
        headers = {"X-Correlation-ID": reference.text, **_unsubscribe(link), **message.headers}
        content = self._content(message, link)
        message.check_images(content.html)
        simple = {
            **_simple(content),
            "Headers": [{"Name": name, "Value": value} for name, value in headers.items()],
        }
        if message.attachments:
            simple["Attachments"] = self._attachments(message.attachments)
        request: Request = {
            "FromEmailAddress": self.sender_of(message),
            "Destination": _destination(message),
            "Content": {"Simple": simple},
            # A tag's value takes no dot, so the attempt is a tag of its own.
            "EmailTags": [
                {"Name": "correlation", "Value": encoded(message.id)},
                {"Name": "attempt", "Value": str(reference.attempt)},
                {"Name": "event_type", "Value": message.event_type},
            ],
            "ConfigurationSetName": self._configuration_set,
        }
        if message.reply_to is not None:
            request["ReplyToAddresses"] = normalised("reply_to", listed(message.reply_to))
        return request

    def submit(self, request: Request) -> Outcome:
        """Hand it to SES. Raises where nobody knows: a 5xx answer, or no answer."""
        said = ask_aws("SES", lambda: self._client.send_email(**request)["MessageId"], refusal_of)
        subject = request["Content"]["Simple"]["Subject"]["Data"][:MAX_SUBJECT]
        return Sent(said, {"subject": subject} if subject else {}) if isinstance(said, str) else said

    def look_up(self, message: Mail, since: int, known: Container[str]) -> Evidence:  # noqa: ARG002 - no list call
        """SES cannot tell. Its events are in the ledger, where the claim would have met them."""
        return Unknowable()

    def _link(self, mail: Mail) -> str | None:
        """Where its addressee opts out; None: it has none. Raises what reading the key does."""
        addressees = mail.addressees
        if mail.topic is None or len(addressees) != 1:
            return None
        if self._links is None:
            raise TypeError("no links for opting out, and a mail with a topic")
        return self._links.url(addressees[0], mail.topic)

    def _content(self, mail: Mail, link: str | None) -> Content:
        self._templates.check_names(mail, strict=self._strict)
        if mail.inline:
            return Content(mail.subject or "", mail.html, mail.text)
        variables = mail.variables if link is None else {**mail.variables, LINK: link}
        try:
            name, version = mail.template or "default", mail.template_version
            return self._templates.render(name, variables, locale=mail.locale, version=version)
        except Invalid as fault:
            if fault.field == LINK and LINK not in variables:
                raise Invalid(LINK, _ONE_ALONE) from None
            raise

    def sender_of(self, mail: Mail) -> str:
        """Whom the mail is from. Raises Invalid for anybody but a sender of the stage."""
        if mail.from_ is None:
            return self._default_sender
        name, bare = address.split(mail.from_)
        sender = self._senders.get(bare.lower())
        if sender is None:
            known = ", ".join(self._senders.values())
            raise Invalid("from", f"is not among this stage's senders; use one of {known}")
        return formataddr((name, sender)) if name else sender

    def _attachments(self, attachments: list[Attachment]) -> list[dict[str, Any]]:
        left = self._max_attachment_bytes
        parts = []
        for at, attachment in enumerate(attachments):
            content = self._payloads.read(f"attachments[{at}].ref", attachment.ref, left)
            left -= len(content)
            parts.append(_part(at, attachment, content))
        return parts


def _unsubscribe(link: str | None) -> dict[str, str]:
    """The two headers that let a mail program opt its owner out with one click."""
    return {} if link is None else {UNSUBSCRIBE: f"<{link}>", UNSUBSCRIBE_POST: ONE_CLICK}


def _simple(content: Content) -> dict[str, Any]:
    bodies = {"Html": content.html, "Text": content.text}
    return {
        "Subject": _utf8(content.subject),
        "Body": {name: _utf8(body) for name, body in bodies.items() if body is not None},
    }


def _utf8(text: str) -> dict[str, str]:
    return {"Data": text, "Charset": "UTF-8"}


def _destination(mail: Mail) -> dict[str, list[str]]:
    name = "to" if mail.to is not None else "email"
    lists = {
        "ToAddresses": normalised(name, listed(mail.recipient)),
        "CcAddresses": normalised("cc", listed(mail.cc)),
        "BccAddresses": normalised("bcc", listed(mail.bcc)),
    }
    return {name: addresses for name, addresses in lists.items() if addresses}


def _part(at: int, attachment: Attachment, content: bytes) -> dict[str, Any]:
    filename = attachment.filename or attachment.ref.rsplit("/", 1)[-1]
    if address.has_control(filename) or not 1 <= len(filename) <= 255:
        raise Invalid(f"attachments[{at}].filename", "has control characters or is over 255 long; shorten it")
    kind = attachment.content_type or _guessed(filename) or "application/octet-stream"
    if address.has_control(kind) or not 1 <= len(kind) <= 78:
        raise Invalid(f"attachments[{at}].content_type", "is no media type; use one like application/pdf")
    part = {"FileName": filename, "ContentType": kind, "RawContent": content}
    if attachment.content_id is None:
        return part
    return {**part, "ContentId": attachment.content_id, "ContentDisposition": "INLINE"}


def _guessed(filename: str) -> str | None:
    """The media type of a file's endings. Of a whole name Python would read what looks like a URL, and raise
    for one that it cannot."""
    return mimetypes.guess_type("file" + "".join(PurePosixPath(filename).suffixes))[0]


def refusal_of(error: ClientError) -> Refusal:
    code, text = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    reason = f"{code}: {text}"
    if code == "LimitExceededException" or "daily message quota" in text.lower():
        return DayUsedUp(reason)
    # In the sandbox, and for a sender that nobody verified, SES says so only in words.
    own = code in {"MessageRejected", "BadRequestException"} and "not verified" not in text
    return refused(error, reason, own=own)
