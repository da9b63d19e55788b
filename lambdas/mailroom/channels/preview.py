"""Previews: messages rendered by the same code as in a stage's sender functions, but not sent. Payloads in
the payload bucket are not read."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from botocore.exceptions import ClientError
from msgspec import structs

from mailroom.aws import clients
from mailroom.channels.fax.contract import Fax, check_sender
from mailroom.channels.mail.contract import Mail
from mailroom.channels.mail.rendering import MailRenderer, RenderedMail
from mailroom.channels.previewed import (
    Preview as Preview,
)
from mailroom.channels.push.contract import Push
from mailroom.channels.sms.contract import Sms
from mailroom.channels.sms.segments import MAX_SEGMENTS, checked, widening
from mailroom.channels.sms.text import text_of
from mailroom.content.payloads import Payloads
from mailroom.content.templates import TOP, Templates
from mailroom.content.versions import CurrentVersions, unbound
from mailroom.message.message import Message, Templated
from mailroom.recipients.unsubscribe_links import Links

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

EXAMPLE_LINK = "https://example.com/unsubscribe/made-up"
"""Placeholder for the recipient's opt-out link, which only a sender function can sign."""


class Stage(Protocol):
    """Settings of a stage that previews need, such as the settings of the HTTP API's function."""

    @property
    def mail_senders(self) -> Sequence[str]: ...

    @property
    def fax_senders(self) -> Sequence[str]: ...

    @property
    def unknown(self) -> Literal["allow", "refuse"]: ...

    @property
    def payload_bucket(self) -> str: ...

    @property
    def templates_bucket(self) -> str: ...


class Previews:
    """Renders and checks messages as the sender functions of one stage would."""

    def __init__(
        self,
        root: Path,
        *,
        mail_senders: Sequence[str],
        fax_senders: Sequence[str] = (),
        strict: bool = False,
        bucket: str = "",
        s3: "S3Client | None" = None,
        published: Payloads | None = None,
        versions: CurrentVersions | None = None,
    ) -> None:
        """Store the settings of a stage.

        `root` contains a folder of templates for each channel. `published` reads published versions of
        templates, and `versions` returns the current version; both are None if the stage does not publish
        templates.

        Attributes that name a sender are only checked if the stage's senders are passed, references to
        payloads only if `bucket` is passed, and whether their objects exist only with `s3`.
        """
        self._templates = {name: Templates(root / name, published) for name in TOP}
        self._payloads = _NamesAlone(cast(Any, s3), bucket)
        self._mails = (MailRenderer if mail_senders else _AnySender)(
            self._templates["mail"],
            self._payloads,
            senders=mail_senders or [_FIRST_SENDER],
            max_attachment_bytes=sys.maxsize,
            links=_ExampleLinks(),
            strict=strict,
        )
        self._fax_senders = fax_senders
        self._strict = strict
        self._versions = versions

    @classmethod
    def of(cls, settings: Stage, root: Path, s3: "S3Client | None" = None) -> "Previews":
        """Build the object that previews messages of the stage with these settings."""
        bucket = settings.templates_bucket
        s3 = s3 or clients.s3()
        return cls(
            root,
            mail_senders=settings.mail_senders,
            fax_senders=settings.fax_senders,
            strict=settings.unknown == "refuse",
            bucket=settings.payload_bucket,
            s3=s3,
            published=Payloads(s3, bucket) if bucket else None,
            versions=CurrentVersions(s3, bucket) if bucket else None,
        )

    def look(self, message: Message) -> Preview:
        """Check and render the message. Raises Invalid in the same cases as the sender function would. If the
        content is in a payload, the message is checked, and the preview is empty."""
        message = self._bound(message)
        self._check(message)
        self._payloads.require_all(message)
        match message:
            case Templated(payload_ref=str()):
                return Preview()
            case Mail():
                return structs.replace(_of_mail(self._mails.render(message)), unused=self.unused(message))
            case Sms():
                text = text_of(message, self._templates["sms"], strict=self._strict)
                preview = Preview(text=text, unused=self.unused(message))
                if message.media_urls:  # a message with media is billed as one, so segments do not matter
                    return preview
                name = "text" if message.template is None else "template"
                segments = checked(name, text, MAX_SEGMENTS)
                count, encoding, reason = segments.count, segments.encoding, widening(text)
                return structs.replace(preview, segments=count, encoding=encoding, encoding_reason=reason)
            case Push():
                return Preview(subject=message.title or "", text=message.body, unused=self.unused(message))
        # The content of an own channel is often its `text`.
        return Preview(text=f"{getattr(message, 'text', '')}" or None, unused=self.unused(message))

    def check(self, message: Message) -> None:
        """Raise Invalid, without rendering, for an unknown template or sender, a misspelt attribute, or an
        object outside the payload bucket."""
        self._check(self._bound(message))

    def _check(self, message: Message) -> None:
        for name, ref in message.objects:
            self._payloads.key(name, ref)
        if isinstance(message, Fax) and self._fax_senders:
            check_sender(message, self._fax_senders)
        elif isinstance(message, Mail):
            self._mails.sender_of(message)
        if isinstance(message, Templated) and message.payload_ref is None:
            templates = self._templates[message.event_type]
            templates.check(message)
            templates.check_names(message, strict=self._strict)

    def unused(self, message: Message) -> list[str]:
        """Return the attributes that neither the contract nor the message's template uses. Return an empty
        list if the message's payload may name a template, because payloads are not read. Raises Invalid for a
        template that cannot be read."""
        used = frozenset[str]()
        if message.may_use and message.payload_ref is not None:
            return []
        if isinstance(message, Templated) and (name := message.template_name) is not None:
            templates = self._templates[message.event_type]
            used = templates.used(name, locale=message.locale, version=message.template_version)
        return sorted(message.unused(used))

    def _bound(self, message: Message) -> Message:
        name = unbound(message)
        if self._versions is None or name is None:
            return message
        version = self._versions.version(message.event_type, name)
        # `cast` is safe: only a Templated message can name a template.
        return structs.replace(cast(Templated, message), template_version=version)


def _of_mail(mail: RenderedMail) -> Preview:
    return Preview(
        headers=dict(_headers(mail)),
        subject=mail.content.subject,
        html=mail.content.html,
        text=mail.content.text,
        attachments=[attachment.filename for attachment in mail.attachments],
    )


def _headers(mail: RenderedMail) -> Iterator[tuple[str, str]]:
    yield "From", mail.sender
    lists = {"To": mail.to, "Cc": mail.cc, "Bcc": mail.bcc, "Reply-To": mail.reply_to}
    for name, addresses in lists.items():
        if addresses:
            yield name, ", ".join(addresses)
    yield "Subject", mail.content.subject
    yield from mail.headers.items()


_FIRST_SENDER = "the stage's first sender <sender@example.com>"


class _AnySender(MailRenderer):
    """Mail renderer that accepts every sender, for a stage whose senders are unknown."""

    def sender_of(self, mail: Mail) -> str:
        return mail.from_ or _FIRST_SENDER


class _NamesAlone(Payloads):
    """Reader of payloads that only checks references to payloads, for previews. The payload is not read,
    because the user of a preview may lack the permission to read it. If the payload bucket is unknown, every
    reference is valid."""

    def key(self, field: str, ref: str) -> str:
        return super().key(field, ref) if self._bucket else ref

    def read(self, field: str, ref: str, limit: int) -> bytes:  # noqa: ARG002 - the content is not read
        self.key(field, ref)
        return b""

    def require_all(self, message: Message) -> None:
        """Raise Invalid for an object that is missing or too large. If S3 refuses the request, the object is
        not checked here, but later by the sender function."""
        if self._client is not None and self._bucket:
            with suppress(ClientError):
                super().require_all(message)


class _ExampleLinks(Links):
    """Opt-out links for previews, which are all the same and not signed."""

    def __init__(self) -> None:
        pass

    def url(self, recipient: str, topic: str, at: float | None = None) -> str:  # noqa: ARG002 - all previews show this link
        return EXAMPLE_LINK

    def page_url(self, recipient: str, sealed_at: float | None = None) -> str:  # noqa: ARG002 - the same
        return EXAMPLE_LINK
