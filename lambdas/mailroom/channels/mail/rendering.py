"""Renders mails into a form that is the same for all providers: sender, recipients, content, headers and
attachments."""

import time
from collections.abc import Sequence

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.aws import clients
from mailroom.aws.secret import CachedSecret, unreadable
from mailroom.channels.mail.contract import (
    UNSUBSCRIBE,
    UNSUBSCRIBE_POST,
    Attachment,
    Mail,
    images_in,
    normalised,
)
from mailroom.channels.mail.media_types import type_of
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Content, Templates, templates_of
from mailroom.environment import MailSender
from mailroom.errors import Invalid, InvalidSecret
from mailroom.message import address
from mailroom.message.message import DEFAULT_TEMPLATE
from mailroom.message.outcome import Misconfigured, NotReady
from mailroom.recipients.unsubscribe_links import ONE_CLICK, Links

LINK = "unsubscribe_url"
"""Name of the template variable that contains the recipient's opt-out link."""

_ONE_ALONE = (
    "is only set in a mail with a `topic` and one recipient in to, cc and bcc together; use such a mail, or "
    "let the template test `{% if unsubscribe_url is defined %}`"
)


class LoadedAttachment(Struct, frozen=True):
    """An attachment whose content was read from the payload bucket."""

    filename: str
    content_type: str
    content: bytes
    content_id: str | None = None
    """Id by which the HTML refers to the attachment, if the HTML shows it as an image."""


class RenderedMail(Struct, frozen=True, kw_only=True):
    """A mail that is ready to be submitted. Addresses are formatted as in a mail's headers."""

    sender: str
    to: list[str]
    cc: list[str]
    bcc: list[str]
    reply_to: list[str]
    content: Content
    headers: dict[str, str]
    tags: dict[str, str]
    """Tags with the message's reference, which the provider's events repeat."""
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
        """Store the options of the renderer. `links` creates opt-out links, and may be None for mails without
        topics. If `strict`, an item with an attribute that has no effect is invalid."""
        self._links = links
        self._strict = strict
        self._templates = templates
        self._payloads = payloads
        self._default_sender = address.normalise(senders[0])
        # SES must get the sender's local part in the case that was verified; items may use another case.
        self._senders = {bare.lower(): bare for _, bare in map(address.split, senders)}
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
        """Return the rendered mail. Raises Invalid, or NotReady if the key that signs opt-out links cannot be
        read.

        If the mail was rendered before, `since` is the time of the earlier rendering in epoch seconds. The
        opt-out link is signed with the key of that time, so that the link is the same.

        A mail with a topic and a single addressee gets an opt-out link: in its headers (RFC 8058), and in the
        template's variable `unsubscribe_url`, which replaces an attribute of the same name. A mail to several
        addressees is rendered without an opt-out link, because all addressees would receive the same link and
        could opt each other out.
        """
        try:
            link = self._link(message, since)
        except InvalidSecret as fault:
            raise NotReady(Misconfigured(str(fault))) from None
        except (ClientError, BotoCoreError) as error:
            raise unreadable("the secret of the opt-out links", error) from None
        return self._rendered(message, link)

    def _rendered(self, message: Mail, link: str | None) -> RenderedMail:
        reference = message.reference
        content = self._content(message, link)
        message.check_images(content.html, content.attached)
        return RenderedMail(
            content=content,
            headers={"X-Correlation-ID": reference.text, **_unsubscribe(link), **message.headers},
            tags={**reference.tags, "event_type": message.event_type},
            attachments=self._loaded(message.attachments, content),
            sender=self.sender_of(message),
            to=normalised("to" if message.to is not None else "email", message.recipient),
            cc=normalised("cc", message.cc),
            bcc=normalised("bcc", message.bcc),
            reply_to=normalised("reply_to", message.reply_to),
        )

    def _link(self, mail: Mail, since: float | None) -> str | None:
        """Return the opt-out link, or None for a mail without a topic or with several addressees. Raises the
        errors of `Links.url`."""
        if mail.topic is None or len(addressees := mail.addressees) != 1:
            return None
        if self._links is None:
            raise TypeError("a mail with a topic needs `links`")
        return self._links.url(addressees[0], mail.topic, since)

    def _content(self, mail: Mail, link: str | None) -> Content:
        self._templates.check_names(mail, strict=self._strict)
        if mail.inline:
            return Content(mail.subject or "", mail.html, mail.text)
        variables = mail.variables if link is None else {**mail.variables, LINK: link}
        try:
            name, version = mail.template or DEFAULT_TEMPLATE, mail.template_version
            return self._templates.render(name, variables, locale=mail.locale, version=version)
        except Invalid as fault:
            if fault.field == LINK and LINK not in variables:
                raise Invalid(LINK, _ONE_ALONE) from None
            raise

    def sender_of(self, mail: Mail) -> str:
        """Return the sender of the mail. Raises Invalid if the stage does not allow this sender."""
        if mail.from_ is None:
            return self._default_sender
        name, bare = address.split(mail.from_)
        sender = self._senders.get(bare.lower())
        if sender is None:
            senders = ", ".join(self._senders.values())
            raise Invalid("from", f"is not among this stage's senders; use one of {senders}")
        return address.formatted(name, sender)

    def _loaded(self, attachments: list[Attachment], content: Content) -> list[LoadedAttachment]:
        """Return the files of the template and of the message. An image that the HTML shows by its name has
        the name as its content id."""
        limit = self._max_attachment_bytes - sum(map(len, content.attached.values()))
        images = images_in(content.html) if content.attached else ()
        loaded = []
        for name, file in content.attached.items():
            attachment = Attachment(name, content_id=name if name in images else None)
            attachment.check(f"files[{name!r}]")
            loaded.append(_attachment(attachment, file))
        for index, attachment in enumerate(attachments):
            file = self._payloads.read(f"attachments[{index}].ref", attachment.ref, limit)
            limit -= len(file)
            loaded.append(_attachment(attachment, file))
        return loaded


def _unsubscribe(link: str | None) -> dict[str, str]:
    """Return the two headers by which a mail program offers to opt out with one click."""
    return {} if link is None else {UNSUBSCRIBE: f"<{link}>", UNSUBSCRIBE_POST: ONE_CLICK}


def _attachment(attachment: Attachment, content: bytes) -> LoadedAttachment:
    kind = attachment.content_type or type_of(attachment.name)
    return LoadedAttachment(attachment.name, kind, content, attachment.content_id)
