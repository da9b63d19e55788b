"""The contract of a text message: the attributes of an item with `event_type: "sms"`."""

import re
from functools import cache
from typing import Annotated, ClassVar, cast

from msgspec import Meta, Struct, defstruct, field, structs

from mailroom.errors import Invalid
from mailroom.message.address import has_control
from mailroom.message.message import Templated, number
from mailroom.message.outcome import Facts

MAX_TEXT = 1600
"""Maximum number of characters, at Twilio and at AWS."""
MAX_MEDIA = 10
"""Maximum number of media in one message, at Twilio."""

_BREAK = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_MEDIA = re.compile(r"(?:https|s3)://[!-~]{1,2000}")


class Sms(Templated, frozen=True, kw_only=True):
    """A text message: `to` one number, and its text, a template's name or media; media may go with either.

    Every attribute of the item, named here or not, is a variable of the template.
    """

    default_region: ClassVar[str] = ""
    """Region of numbers without a country code. If empty, every number needs its country code."""

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
        """The number in E.164, by which a look-up searches. Raises Invalid."""
        return number("to", self.to, self.default_region)

    @property
    def recipient(self) -> str:
        return self.line

    @property
    def addressees(self) -> tuple[str, ...]:
        """The number in E.164, since one person's number has several spellings."""
        return (self.line,)

    @property
    def kept(self) -> dict[str, str]:
        """The number, in the ledger from the claim on, because look-ups search by it (see `line`)."""
        return {"line": self.line}

    @property
    def objects(self) -> list[tuple[str, str]]:
        """The payload, and the media in the payload bucket."""
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
                    f"media_urls[{index}]", "is no URL of media; use https://host/path or s3://bucket/key"
                )

    def _check_content(self) -> None:
        self.check_template(None if self.text is None else "text")
        if self.text is not None:
            check_text("text", self.text)
        elif self.template is None and not self.media_urls and self.payload_ref is None:
            raise Invalid("text", "is missing; give text, a template or media_urls")


@cache
def sms_in(region: str) -> type[Sms]:
    """Return the contract in which numbers without a country code are in `region` (ISO 3166, such as US)."""
    values = {"default_region": region, "__doc__": Sms.__doc__}
    return cast(type[Sms], defstruct("Sms", [], bases=(Sms,), namespace=values, frozen=True, kw_only=True))


def plain(text: str) -> str:
    """Return the text with \\n for every kind of line break (web forms and Windows write CRLF), and a space
    for a tab: phones show only these."""
    return _BREAK.sub("\n", text).replace("\t", " ")


def check_text(name: str, text: str) -> None:
    """Raise Invalid for a text that a provider would refuse or change; `name` is the attribute at fault."""
    if not text.strip():
        raise Invalid(name, "comes out empty; write something")
    if len(text) > MAX_TEXT:
        raise Invalid(name, f"has {len(text)} characters; use at most {MAX_TEXT}")
    if has_control(text.replace("\n", "")):
        raise Invalid(name, "holds a control character; plain text and \\n are all that a phone shows")


class SmsRequest(Struct, frozen=True):
    """A request to send one text message."""

    to: str
    """Number in E.164."""
    text: str
    """Text; empty if the message consists of media."""
    media: tuple[str, ...]
    """URLs of the media."""
    reference: str
    """Our reference, which the provider's events repeat."""
    expires: float | None = None
    """Time in epoch seconds after which the message is not worth delivering."""
    facts: Facts = {}
    """Attributes for the ledger item."""
    exact: bool = True
    """Whether an earlier submit had the same text for certain. A template may have been deployed again since,
    or a copy of the message may have been queued with another version of the template."""
