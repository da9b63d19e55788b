"""Renders mails into a form that is the same for all providers: sender, recipients, content, headers and
attachments."""

import time
from collections.abc import Sequence

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.aws import clients
from mailroom.aws.secret import CachedSecret, unreadable
from mailroom.channels.mail.contract import (
    MAX_ATTACHMENTS,
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
PAGE_LINK = "preferences_url"
"""Name of the template variable that contains the link to the recipient's page with all topics."""

_ONE_ALONE = (
    "is only set in a mail with {}one recipient in to, cc and bcc together; use such a mail, or let the "
    "template test `{{% if {} is defined %}}`"
)
_MISSING = {LINK: _ONE_ALONE.format("a `topic` and ", LINK), PAGE_LINK: _ONE_ALONE.format("", PAGE_LINK)}
"""Problems of templates that need a missing link, by the variable."""


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
        could opt each other out. The same applies to the link to the page with all topics, which is only made
        for a template that uses its variable, and also without a topic.
        """
        uses_page = not message.inline and PAGE_LINK in self._templates.used(
            message.template or DEFAULT_TEMPLATE, locale=message.locale, version=message.template_version
        )
        try:
            links = self._links_of(message, since, uses_page=uses_page)
        except InvalidSecret as fault:
            raise NotReady(Misconfigured(str(fault))) from None
        except (ClientError, BotoCoreError) as error:
            raise unreadable("the secret of the opt-out links", error) from None
        return self._rendered(message, links)

    def _rendered(self, message: Mail, links: dict[str, str]) -> RenderedMail:
        reference = message.reference
        content = self._content(message, links)
        message.check_images(content.html, content.attached)
        return RenderedMail(
            content=content,
            headers={"X-Correlation-ID": reference.text, **_unsubscribe(links.get(LINK)), **message.headers},
            tags={**reference.tags, "event_type": message.event_type},
            attachments=self._loaded(message.attachments, content),
            sender=self.sender_of(message),
            to=normalised("to" if message.to is not None else "email", message.recipient),
            cc=normalised("cc", message.cc),
            bcc=normalised("bcc", message.bcc),
            reply_to=normalised("reply_to", message.reply_to),
        )

    def _links_of(self, mail: Mail, since: float | None, *, uses_page: bool) -> dict[str, str]:
        """Return the recipient's links by template variable: none for a mail with several addressees. Raises
        the errors of `Links.url`."""
        if not (uses_page or mail.topic is not None) or len(addressees := mail.addressees) != 1:
            return {}
        if self._links is None:
            raise TypeError("a mail with a topic needs `links`")
        links = {PAGE_LINK: self._links.page_url(addressees[0], since)} if uses_page else {}
        if mail.topic is not None:
            links[LINK] = self._links.url(addressees[0], mail.topic, since)
        return links

    def _content(self, mail: Mail, links: dict[str, str]) -> Content:
        self._templates.check_names(mail, strict=self._strict)
        if mail.inline:
            return Content(mail.subject or "", mail.html, mail.text)
        variables = {**mail.variables, **links}
        try:
            name, version = mail.template or DEFAULT_TEMPLATE, mail.template_version
            return self._templates.render(name, variables, locale=mail.locale, version=version)
        except Invalid as fault:
            if fault.field in _MISSING and fault.field not in variables:
                raise Invalid(fault.field, _MISSING[fault.field]) from None
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
        size = sum(map(len, content.attached.values()))
        if (limit := self._max_attachment_bytes - size) < 0:
            limit_sentence = (
                f"this stage sends at most {self._max_attachment_bytes:,} (mail.max_attachment_bytes)"
            )
            raise Invalid("template", f"has files of {size:,} bytes; {limit_sentence}")
        if len(content.attached) + len(attachments) > MAX_ATTACHMENTS:
            raise Invalid("attachments", f"are over {MAX_ATTACHMENTS} with the template's files; send fewer")
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
