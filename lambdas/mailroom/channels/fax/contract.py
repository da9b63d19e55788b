"""The contract of a fax: attributes of items with `event_type: "fax"` and of bodies of the fax queue."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, field

from mailroom.errors import Invalid, Malformed
from mailroom.message.address import to_e164
from mailroom.message.message import MAX_ATTEMPT, MAX_REF_BYTES, Message, number
from mailroom.message.outcome import Fault

_URL = re.compile(r"https://[!-~]{1,2000}")


class Fax(Message, frozen=True, kw_only=True):
    """A fax to one number (`to`), with its PDF at `pdf_url` or `payload_ref`."""

    windowed: ClassVar[bool] = False

    to: Annotated[str | None, Meta(description="one fax number in international form, +16175551234")] = None
    pdf_url: Annotated[str | None, Meta(description="https URL of the PDF; the provider fetches it")] = None
    payload_ref: Annotated[
        str | None,
        Meta(
            description="s3://bucket/key: the PDF itself, in the stage's payload bucket",
            extra_json_schema={"maxLength": MAX_REF_BYTES},
        ),
    ] = None
    from_: Annotated[str | None, Meta(description="one of the stage's fax numbers; default: first")] = field(
        default=None, name="from"
    )
    retry_count: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_ATTEMPT,
            description="attempts that another gateway made before; counted towards the maximum",
        ),
    ] = 0

    @property
    def line(self) -> str:
        """The recipient's number in E.164, so that different spellings of a number name the same line. Raises
        Invalid."""
        return number("to", self.to)

    @property
    def recipient(self) -> str:
        return self.line

    @property
    def group(self) -> str:
        """Message group of the fax in the FIFO queue: the recipient's line, which can receive one fax at a
        time."""
        return self.line

    @property
    def kept(self) -> dict[str, str | int]:
        """Attributes of the fax that the ledger stores and a retry uses again. The field `from_` is stored as
        `from`, its name in an item."""
        names = ("pdf_url", "payload_ref", "expires_at", "retry_count")
        attributes = {**{name: getattr(self, name) for name in names}, "from": self.from_}
        return {name: value for name, value in attributes.items() if value}

    def check(self) -> None:
        super().check()
        if self.to is None:
            raise Invalid("to", "is missing; give one fax number in international form, such as +16175551234")
        number("to", self.to)
        if self.from_ is not None:
            number("from", self.from_)
        if self.pdf_url is None and self.payload_ref is None:
            raise Invalid("pdf_url", "is missing, and so is payload_ref; set one of them")
        if self.pdf_url is not None and self.payload_ref is not None:
            raise Invalid("pdf_url", "is set, and so is payload_ref; remove one of them")
        if self.pdf_url is not None and not _URL.fullmatch(self.pdf_url):
            raise Invalid("pdf_url", "is not an https URL; use https://host/file.pdf")


def check_sender(fax: Fax, senders: Sequence[str]) -> str:
    """Return the number that the fax is sent from. Raises Invalid if the number is not in `senders`."""
    if fax.from_ is None:
        return senders[0]
    number = to_e164(fax.from_)
    if number not in senders:
        raise Invalid("from", f"is not among this stage's fax numbers; use one of {', '.join(senders)}")
    return number


def item_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item in a message body of the fax queue. A body is either an item, or comes from an upstream
    application: then its `fax_id` becomes the item's id. Raises Malformed."""
    item = dict(body)
    if "id" in item or "event_type" in item:
        return item
    fax_id = item.pop("fax_id", None)
    if not isinstance(fax_id, str) or not fax_id:
        raise Malformed("is not a fax: `fax_id` is missing or not a string")
    return {**item, "id": fax_id, "event_type": "fax"}


class FaxRequest(Struct, frozen=True):
    """A request to send one fax."""

    to: str
    sender: str
    media_url: str
    reference: str
    """Mailroom's reference of this attempt, for providers that store a reference with a fax."""


class Pending(Struct, frozen=True):
    """State of a fax that has not ended: the recipient's line may be in use."""

    status: str


class Delivered(Struct, frozen=True):
    """State of a fax whose pages were all received. The fields have the values in the provider's response,
    which may be missing or invalid."""

    pages: object = None
    """Number of pages of the fax."""
    sender: object = None
    """Number from which the fax was sent."""
    at: object = None
    """Time of the fax's last change at the provider, which is its delivery."""


class Undelivered(Struct, frozen=True):
    """State of a fax that the provider could not deliver."""

    status: str
    """Status for status callbacks, such as `busy` or `no-answer`."""
    again: bool
    """Whether another attempt may succeed."""
    detail: str = ""
    """The provider's explanation of the failure."""
    fault: Fault | None = None
    """Cause of the failure; None if it is unknown."""


FaxState = Pending | Delivered | Undelivered
