"""A mail as any provider gets it: whom it is from and for, what it says, and its attachments."""

import mimetypes
import time
from collections.abc import Sequence
from email.utils import formataddr
from pathlib import PurePosixPath

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

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
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Content, Templates, templates_of
from mailroom.environment import MailSender
from mailroom.errors import Invalid
from mailroom.message import address
from mailroom.message.outcome import Misconfigured, NotReady
from mailroom.recipients.unsubscribe_links import ONE_CLICK, InvalidSigningKey, Links

LINK = "unsubscribe_url"
"""The template's variable."""

_ONE_ALONE = (
    "is given to a mail with a `topic` and one recipient, cc and bcc counted; make it such a mail, or let "
    "the template ask `{% if unsubscribe_url is defined %}`"
)


class LoadedAttachment(Struct, frozen=True):
    """An attachment with its content. `content_id`: the HTML shows it by that."""

    filename: str
    content_type: str
    content: bytes
    content_id: str | None = None


class RenderedMail(Struct, frozen=True, kw_only=True):
    """A mail with nothing left to look up. Addresses are as a header has them; `tags` bring the message's
    reference back with the provider's events."""

    sender: str
    to: list[str]
    cc: list[str]
    bcc: list[str]
    reply_to: list[str]
    content: Content
    headers: dict[str, str]
    tags: dict[str, str]
    attachments: list[LoadedAttachment]


class MailRenderer:
    """Renders the mails of one stage."""

    def __init__(
        self,
        templates: Templates,
        payloads: Payloads,
        *,
        senders: Sequence[str],
        max_attachment_bytes: int,
        links: Links | None = None,
        strict: bool = False,
    ) -> None:
        """`links` may be None where no mail has a topic. `strict`: what nobody uses is refused."""
        self._links = links
        self._strict = strict
        self._templates = templates
        self._payloads = payloads
        self._default_sender = address.normalise(senders[0])
        # SES distinguishes upper and lower case in an identity's local part; items need not.
        self._senders = {bare.lower(): bare for bare in (address.split(each)[1] for each in senders)}
        self._max_attachment_bytes = max_attachment_bytes

    @classmethod
    def of(cls, settings: MailSender) -> "MailRenderer":
        secret = CachedSecret(clients.secretsmanager(), settings.unsubscribe_secret_arn, time.time)
        return cls(
            templates_of(settings),
            Payloads(clients.s3(), settings.payload_bucket),
            senders=settings.mail_senders,
            max_attachment_bytes=settings.max_attachment_bytes,
            links=Links(secret, settings.unsubscribe_url),
            strict=settings.unknown == "refuse",
        )

    def render(self, message: Mail, since: float | None = None) -> RenderedMail:
        """The mail; as it was at `since` (epoch seconds), if it was rendered then: its link is signed with
        the key of that time. Raises Invalid, and NotReady where that key cannot be read.

        A mail with a topic and one addressee carries a link for opting out: in its headers (RFC 8058), and as
        the template's variable `unsubscribe_url`, whatever the item calls so itself. One to several has
        neither: all would get the same link, and one of them would choose for the others.
        """
        try:
            link = self._link(message, since)
        except InvalidSigningKey as fault:
            raise NotReady(Misconfigured(str(fault))) from None
        except (ClientError, BotoCoreError) as error:
            raise unreadable("the secret of the links for opting out", error) from None
        return self._rendered(message, link)

    def _rendered(self, message: Mail, link: str | None) -> RenderedMail:
        reference = message.reference
        content = self._content(message, link)
        message.check_images(content.html)
        return RenderedMail(
            content=content,
            headers={"X-Correlation-ID": reference.text, **_unsubscribe(link), **message.headers},
            tags={**reference.tags, "event_type": message.event_type},
            attachments=self._loaded(message.attachments),
            sender=self.sender_of(message),
            to=normalised("to" if message.to is not None else "email", listed(message.recipient)),
            cc=normalised("cc", listed(message.cc)),
            bcc=normalised("bcc", listed(message.bcc)),
            reply_to=normalised("reply_to", listed(message.reply_to)),
        )

    def _link(self, mail: Mail, since: float | None) -> str | None:
        """Where its addressee opts out; None: it has none. Raises what reading the key does."""
        addressees = mail.addressees
        if mail.topic is None or len(addressees) != 1:
            return None
        if self._links is None:
            raise TypeError("no links for opting out, and a mail with a topic")
        return self._links.url(addressees[0], mail.topic, since)

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

    def _loaded(self, attachments: list[Attachment]) -> list[LoadedAttachment]:
        left = self._max_attachment_bytes
        found = []
        for at, attachment in enumerate(attachments):
            content = self._payloads.read(f"attachments[{at}].ref", attachment.ref, left)
            left -= len(content)
            found.append(_attachment(at, attachment, content))
        return found


def _unsubscribe(link: str | None) -> dict[str, str]:
    """The two headers that let a mail program opt its owner out with one click."""
    return {} if link is None else {UNSUBSCRIBE: f"<{link}>", UNSUBSCRIBE_POST: ONE_CLICK}


def _attachment(at: int, attachment: Attachment, content: bytes) -> LoadedAttachment:
    filename = attachment.filename or attachment.ref.rsplit("/", 1)[-1]
    if address.has_control(filename) or not 1 <= len(filename) <= 255:
        raise Invalid(f"attachments[{at}].filename", "has control characters or is over 255 long; shorten it")
    kind = attachment.content_type or _guessed(filename) or "application/octet-stream"
    if address.has_control(kind) or not 1 <= len(kind) <= 78:
        raise Invalid(f"attachments[{at}].content_type", "is no media type; use one like application/pdf")
    return LoadedAttachment(filename, kind, content, attachment.content_id)


def _guessed(filename: str) -> str | None:
    """The media type of a file's endings. Of a whole name Python would read what looks like a URL, and raise
    for one that it cannot."""
    return mimetypes.guess_type("file" + "".join(PurePosixPath(filename).suffixes))[0]
