"""The contract of a push notification: the attributes of an item with `event_type: "push"`."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, cast

from msgspec import Meta, defstruct, field

from mailroom.errors import Invalid
from mailroom.message.message import MAX_SUBJECT, Message

_ARN = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:"
ENDPOINT = re.compile(
    rf"(?P<start>{_ARN})endpoint/(?P<platform>[A-Z_]+)/(?P<name>[A-Za-z0-9_.-]{{1,256}})/[A-Za-z0-9-]{{1,64}}",
    re.ASCII,
)
TOPIC = re.compile(rf"{_ARN}[A-Za-z0-9_-]{{1,256}}", re.ASCII)
_TOKEN = re.compile(r"[!-~]{1,1024}")

# Names in `data` that FCM reserves, and Apple's reserved name `aps`. An item with such a name is invalid for
# every platform, because the same item may be sent to any platform.
_RESERVED = {"aps", "from", "message_type", "notification", "collapse_key"}
_RESERVED_PREFIXES = ("google", "gcm")


class Push(Message, frozen=True, kw_only=True):
    """A push notification to one device or topic (`to`), with `title`, `body` or both. A push with only
    `data` wakes the app without a visible notification."""

    addressing: ClassVar[tuple[str, ...]] = ("to", "platform")
    applications: ClassVar[tuple[str, ...] | None] = None
    """Names of the stage's platform applications; None if the stage is unknown."""

    to: Annotated[
        str | None,
        Meta(description="the ARN of an SNS platform endpoint or topic, or a device token"),
    ] = None
    platform: Annotated[
        str | None,
        Meta(description="for a device token: a platform application of the stage; default: the only one"),
    ] = None
    title: str | None = None
    body: str | None = None
    data: Annotated[
        dict[str, Any], Meta(description="for the app; FCM gets values other than strings as JSON")
    ] = field(default_factory=dict)

    @property
    def recipient(self) -> str:
        """The recipient: the ARN of an endpoint or topic, or a device token."""
        return self.to or ""

    @property
    def is_token(self) -> bool:
        """Whether `to` is a device token. SNS may still have to create an endpoint for a token."""
        return not self.recipient.startswith("arn:")

    @property
    def application(self) -> str:
        """Name of the platform application that a device token belongs to; empty if the stage is unknown."""
        default = self.applications[0] if self.applications and len(self.applications) == 1 else ""
        return self.platform or default

    @property
    def addressees(self) -> tuple[str, ...]:
        """The endpoint's ARN, or the token with the name of its application. Empty for a topic, because the
        subscribers of a topic are unknown to Mailroom."""
        if self.is_token:
            return (f"{self.application}#{self.recipient}",)
        return (self.recipient,) if ENDPOINT.fullmatch(self.recipient) else ()

    @property
    def headline(self) -> Mapping[str, str | int]:
        """The title of the push as the ledger's attribute `subject`; empty without a title."""
        return {"subject": self.title[:MAX_SUBJECT]} if self.title else {}

    @property
    def silent(self) -> bool:
        """Whether the push only wakes the app: a push without title and body is not displayed."""
        return not self.title and not self.body

    def check(self) -> None:
        super().check()
        if self.to is None:
            raise Invalid("to", "is missing; use the ARN of an endpoint or topic, or a device token")
        if self.is_token:
            self._check_token()
        else:
            self._check_arn()
        if self.silent and not self.data and self.payload_ref is None:
            raise Invalid("body", "is missing, and so are title and data; set one of them")
        for name in self.data:
            if name in _RESERVED or name.startswith(_RESERVED_PREFIXES):
                raise Invalid(f"data.{name:.60}", "is a name reserved by Google or Apple; use another one")

    def _check_arn(self) -> None:
        if not ENDPOINT.fullmatch(self.recipient) and not TOPIC.fullmatch(self.recipient):
            raise Invalid("to", "is not the ARN of a platform endpoint or topic of SNS")
        if self.platform is not None:
            raise Invalid("platform", "is only valid with a device token; remove it")

    def _check_token(self) -> None:
        if not _TOKEN.fullmatch(self.recipient):
            raise Invalid("to", "is not a device token; use up to 1024 ASCII characters without spaces")
        if self.applications is None:
            return
        if not self.applications:
            raise Invalid("to", "is a device token, and this stage has no platform application; use an ARN")
        if not self.application:
            raise Invalid("platform", f"is missing for a device token; use {_either(self.applications)}")
        if self.application not in self.applications:
            raise Invalid("platform", f"{self.platform!r:.60} is unknown; use {_either(self.applications)}")


def push_to(applications: Iterable[str]) -> type[Push]:
    """Return the contract of a stage with these platform applications."""
    values = {"applications": tuple(applications), "__doc__": Push.__doc__}
    return cast(type[Push], defstruct("Push", [], bases=(Push,), namespace=values, frozen=True, kw_only=True))


def _either(names: Iterable[str]) -> str:
    return " or ".join(names)
