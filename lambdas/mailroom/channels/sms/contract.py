"""The contract of a text message: the attributes of an item with `event_type: "sms"`."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, ClassVar, cast

from msgspec import Meta, Struct, defstruct, field, structs

from mailroom.errors import Invalid
from mailroom.message.address import has_control
from mailroom.message.message import Templated, number
from mailroom.message.outcome import Facts

MAX_TEXT = 1600
"""Maximum number of characters in a text, the limit of Twilio and of AWS."""
MAX_MEDIA = 10
"""Maximum number of media in one message, the limit of Twilio."""

_BREAK = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_MEDIA = re.compile(r"https://[!-~]{1,2000}|s3://.+")
"""Pattern of a URL of media. The key in s3://bucket/key may have any characters, such as blanks.
The sender checks the key by `Payloads.key`, like the key of an attachment."""


class Sms(Templated, frozen=True, kw_only=True):
    """A text message to one number (`to`), with `text`, `template` or `media_urls`. Media can be combined
    with a text or a template.

    Every attribute of the item is a variable of the template, even if it is not listed here.
    """

    vital: ClassVar[Mapping[str, tuple[str, ...]]] = {**Templated.vital, "media_urls": ()}
    default_region: ClassVar[str] = ""
    """Country (ISO 3166, such as US) of numbers without a country code. If empty, such numbers are
    invalid."""

    to: Annotated[str | None, Meta(description="one number, best in international form, +16175551234")] = None
    text: Annotated[str | None, Meta(description=f"up to {MAX_TEXT} characters; a line break is \\n")] = None
    media_urls: Annotated[
        list[str],
        Meta(max_length=MAX_MEDIA, description="https, or s3://bucket/key in the stage's payload bucket"),
    ] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.text is not None:
            structs.force_setattr(self, "text", plain(self.text))

    @property
    def line(self) -> str:
        """The recipient's number in E.164, which a look-up searches for. Raises Invalid."""
        return number("to", self.to, self.default_region)

    @property
    def recipient(self) -> str:
        return self.line

    @property
    def addressees(self) -> tuple[str, ...]:
        """The recipient's number in E.164, so that different spellings of a number are recognised as
        equal."""
        return (self.line,)

    @property
    def kept(self) -> dict[str, str]:
        """Attributes that the claim stores in the ledger: the recipient's number, which look-ups search
        for."""
        return {"line": self.line}

    @property
    def objects(self) -> list[tuple[str, str]]:
        """References to objects of the payload bucket: the payload, and media with a URL s3://…"""
        media = [(f"media_urls[{index}]", url) for index, url in enumerate(self.media_urls)]
        return [*super().objects, *((name, url) for name, url in media if url.startswith("s3://"))]

    @property
    def kind(self) -> str:
        """Form of the content: media, template or text."""
        if self.media_urls:
            return "media"
        return "text" if self.template is None else "template"

    @property
    def may_use(self) -> bool:
        return self.template is not None or self.payload_ref is not None

    def check(self) -> None:
        super().check()
        if self.to is None:
            raise Invalid("to", "is missing; give one number in international form, such as +16175551234")
        _ = self.line
        self._check_content()
        for index, url in enumerate(self.media_urls):
            if not _MEDIA.fullmatch(url):
                raise Invalid(
                    f"media_urls[{index}]", "is not a URL of media; use https://host/path or s3://bucket/key"
                )

    def _check_content(self) -> None:
        self.check_template(None if self.text is None else "text")
        if self.text is not None:
            check_text("text", self.text)
        elif self.template is None and not self.media_urls and self.payload_ref is None:
            raise Invalid("text", "is missing; set text, template or media_urls")


@cache
def sms_in(region: str) -> type[Sms]:
    """Return the contract of text messages that reads a number without a country code as a number of `region`
    (ISO 3166, such as US)."""
    values = {"default_region": region, "__doc__": Sms.__doc__}
    return cast(type[Sms], defstruct("Sms", [], bases=(Sms,), namespace=values, frozen=True, kw_only=True))


def plain(text: str) -> str:
    """Return the text with every kind of line break (web forms and Windows write CRLF) replaced by \\n, and
    every tab by a space, because phones do not display other line breaks or tabs."""
    return _BREAK.sub("\n", text).replace("\t", " ")


def check_text(name: str, text: str) -> None:
    """Raise Invalid for a text that a provider would refuse or change; `name` is the attribute with the
    text."""
    if not text.strip():
        raise Invalid(name, "is empty or has only spaces; add text")
    if len(text) > MAX_TEXT:
        raise Invalid(name, f"has {len(text)} characters; use at most {MAX_TEXT}")
    if has_control(text.replace("\n", "")):
        raise Invalid(name, "holds a control character; use only plain text and \\n")


class SmsRequest(Struct, frozen=True):
    """A request to send one text message."""

    to: str
    """Recipient's number in E.164."""
    text: str
    """Text; empty if the message consists of media."""
    media: tuple[str, ...]
    """URLs of the media."""
    reference: str
    """Mailroom's reference of the message, which the provider's events contain."""
    expires: float | None = None
    """Time in epoch seconds after which the message is not worth delivering."""
    facts: Facts = {}
    """Attributes to be added to the ledger item when the provider has accepted the message."""
    exact: bool = True
    """Whether an earlier try certainly had the same text. With a template this is uncertain, because the
    template may have changed since that try, or a copy of the message may have been queued with another
    version of the template."""
