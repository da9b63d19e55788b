"""The contract of a mail: the attributes of an item with `event_type: "mail"`."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

from msgspec import Meta, Struct, field, structs

from mailroom.errors import Invalid
from mailroom.message import address
from mailroom.message.address import has_control
from mailroom.message.message import DEFAULT_TEMPLATE, MAX_SUBJECT, Templated

MAX_OWN_HEADERS = 12
"""Maximum number of headers in an item. SES v2 allows 15 headers in a mail. Mailroom adds X-Correlation-ID,
and two more headers to a mail with a topic."""
HEADER_NAME = re.compile(r"[!-9;-@A-~]{1,126}")
HEADER_VALUE = re.compile(r"[ -~]{1,995}")
MAX_HEADER = 996
"""Maximum number of characters of a header's name and value together. SES v2's API reference states the limit
only in words (MessageHeader, read on 2026-11-29)."""
UNSUBSCRIBE, UNSUBSCRIBE_POST = "List-Unsubscribe", "List-Unsubscribe-Post"
"""Names of RFC 8058's headers: one holds the opt-out link, the other states that one click is enough."""
ORIGINAL_TO = "X-Original-To"
"""Name of the header that lists the original recipients of a mail that was redirected to the stage's
`recipients.redirect_to`."""

_RESERVED = {"from", "to", "cc", "bcc", "subject", "reply-to", "sender", "return-path", "date"} | {
    *("message-id", "mime-version", "received", "dkim-signature"),
    "x-correlation-id",
}
_OF_TOPICS = {UNSUBSCRIBE.lower(), UNSUBSCRIBE_POST.lower()}
_RESERVED_PREFIXES = ("content-", "x-ses-", "resent-", "arc-")


def check_headers(headers: dict[str, Any], *, topical: bool = False) -> None:
    """Raise Invalid for a header that SES refuses, that contains a line break, or that only Mailroom may set.
    If the mail is `topical` (is about a topic), only Mailroom may set the opt-out headers."""
    if len(headers) > MAX_OWN_HEADERS:
        raise Invalid("headers", f"has {len(headers)} entries; use at most {MAX_OWN_HEADERS}")
    if len({name.lower() for name in headers}) < len(headers):
        raise Invalid("headers", "contains a name twice, in upper and lower case; use it once")
    for name, value in headers.items():
        fault = _name_fault(name, topical=topical) or _value_fault(name, value)
        if fault:
            start = name[:126]
            raise Invalid(f"headers.{start!r}" if has_control(start) else f"headers.{start}", fault)


def _name_fault(name: str, *, topical: bool) -> str | None:
    lower = name.lower()
    if not HEADER_NAME.fullmatch(name):
        return "is not a header's name; use printable ASCII without a colon or space"
    if lower in _RESERVED or lower.startswith(_RESERVED_PREFIXES):
        return "is a reserved header; use an attribute of the item, such as subject, or another name"
    if topical and lower in _OF_TOPICS:
        return "is set by Mailroom in a mail with a topic; remove it or the topic"
    return None


def _value_fault(name: str, value: Any) -> str | None:
    if not isinstance(value, str):
        return "is not a string; use a string"
    if not HEADER_VALUE.fullmatch(value):
        return "is not a header value; use 1 to 995 printable ASCII characters"
    if (count := len(name) + len(value)) > MAX_HEADER:
        return f"has {count} characters in its name and value together; use at most {MAX_HEADER}"
    return None


_CONTENT_ID = re.compile(r"[A-Za-z0-9._@-]{1,78}", re.ASCII)
"""Pattern of a valid content id: characters that need no escaping in a header or a URL (RFC 2392), up to the
length that SES allows."""
MAX_FILENAME = 255
MAX_MEDIA_TYPE = 78
_TYPE_NAME, _TOKEN = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*", r"[A-Za-z0-9!#$%&'*+.^_`{|}~-]+"
_MEDIA_TYPE = re.compile(
    rf"{_TYPE_NAME}/{_TYPE_NAME}(?: *; *{_TOKEN}=(?:{_TOKEN}|\"[ !#-\[\]-~]*\"))*", re.ASCII
)
"""Pattern of a media type: two restricted names (RFC 6838, 4.2), and parameters (RFC 2045, 5.1)."""
_CID = re.compile(r"""(?:\b(?:src|background)\s*=\s*["']?|\burl\(["']?)cid:([^"'\s>)]+)""", re.IGNORECASE)
"""Pattern of a reference in the HTML to an attached image (`cid:` and the content id)."""
UNSUPPORTED = re.compile(
    r"(?i)\.(ad[ep]|app|asp|ba[st]|cer|chm|cmd|com|cpl|crt|csh|der|exe|fxp|gadget|hlp|hta|in[fs]|isp|its|jse?|ksh"
    r"|lib|lnk|ma[dfgmqrstuvw]|md[abetwz]|ms[cipt]|msh[12]?(xml)?|ops|pcd|pif|plg|pr[fg]|ps[12](xml)?|psc[12]|reg"
    r"|sc[frt]|sh[bs]|sys|tmp|url|vb[es]?|vps|vs[stw]|vsmacros|vxd|ws[cfh]?|xnk)\Z"
)
"""Pattern of filename extensions that SES does not send. Resend refuses the same extensions, except for .ade.

Sources, read in November 2026: https://docs.aws.amazon.com/ses/latest/dg/mime-types.html and
https://resend.com/docs/knowledge-base/what-attachment-types-are-not-supported.
"""
MAX_RECIPIENTS = 50
"""Maximum number of addresses in to, cc and bcc together, the limit of SES v2."""
MAX_ATTACHMENTS = 20
"""Maximum number of attachments. Each attachment takes a request to S3, for which the whole batch waits."""

Addresses = str | list[str]


class Attachment(Struct, frozen=True, forbid_unknown_fields=True):
    """An object of the payload bucket that is sent with the mail."""

    ref: Annotated[str, Meta(description="s3://bucket/key in the stage's payload bucket")]
    filename: Annotated[str | None, Meta(description="default: the last part of the key")] = None
    content_type: Annotated[str | None, Meta(description="default: guessed from the filename")] = None
    content_id: Annotated[
        str | None, Meta(description="id of an image; the HTML refers to it by cid: and the id")
    ] = None

    @property
    def name(self) -> str:
        """Filename that the recipient sees."""
        return self.filename or self.ref.rsplit("/", 1)[-1]

    def check(self, place: str) -> None:
        """Raise Invalid for an attachment that a provider refuses. `place` precedes the attribute in the
        error."""
        if has_control(self.name) or not 1 <= len(self.name) <= MAX_FILENAME:
            fault = "has control characters, or not 1 to 255 characters; use another name"
            raise Invalid(f"{place}.filename", fault)
        if end := UNSUPPORTED.search(self.name):
            raise Invalid(f"{place}.filename", f"{end[0]} is refused by providers; send a link to the file")
        kind = self.content_type
        if kind and not (len(kind) <= MAX_MEDIA_TYPE and _MEDIA_TYPE.fullmatch(kind)):
            raise Invalid(f"{place}.content_type", "is not a media type; use one like application/pdf")
        if self.content_id is not None and not _CONTENT_ID.fullmatch(self.content_id):
            fault = "must be 1 to 78 letters, digits or .-_@ characters, like logo"
            raise Invalid(f"{place}.content_id", fault)


class Mail(Templated, frozen=True, kw_only=True):
    """A mail to `to` (or `email`), with `template`, or with `subject` and at least one of `text` and `html`.

    Every attribute of the item is a variable of the template, even if it is not listed here.
    """

    addressing: ClassVar[tuple[str, ...]] = ("to", "email", "cc", "bcc")
    vital: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **Templated.vital,
        "reply_to": ("reply_to_addresses", "reply_to_address", "reply_to_email", "reply_address"),
        "cc": ("cc_to", "cc_email", "cc_emails", "cc_address", "cc_addresses", "carbon_copy"),
        "bcc": ("bcc_to", "bcc_email", "bcc_emails", "bcc_address", "bcc_addresses", "blind_carbon_copy"),
        "attachments": ("attached_file", "attached_files"),
    }
    hints: ClassVar[Mapping[str, str]] = {
        "attachments": "put the file into the payload bucket, and use {ref, filename, content_type}"
    }

    to: Annotated[Addresses | None, Meta(description=f"one address or up to {MAX_RECIPIENTS}")] = None
    email: Annotated[Addresses | None, Meta(description="the same as `to`; ignored if `to` is set")] = None
    subject: str | None = None
    text: str | None = None
    html: str | None = None
    from_: Annotated[str | None, Meta(description="one of the stage's senders; default: the first")] = field(
        default=None, name="from"
    )
    reply_to: Addresses | None = None
    cc: Addresses | None = None
    bcc: Addresses | None = None
    headers: Annotated[
        dict[str, Any], Meta(extra_json_schema={"additionalProperties": {"type": "string"}})
    ] = field(default_factory=dict)
    attachments: Annotated[list[Attachment], Meta(max_length=MAX_ATTACHMENTS)] = field(default_factory=list)

    @property
    def recipient(self) -> str | list[str]:
        """The addresses in `to`, or in `email` if `to` is missing, in the form in which the item contains
        them."""
        return (self.email if self.to is None else self.to) or []

    @property
    def addressees(self) -> tuple[str, ...]:
        """The addresses in to, cc and bcc without duplicates, without display names and in lower case."""
        addresses = (*listed(self.recipient), *listed(self.cc), *listed(self.bcc))
        return tuple(dict.fromkeys(map(address.bare, addresses)))

    @property
    def recipient_count(self) -> int:
        """Number of addresses in to, cc and bcc. An address that occurs twice is submitted twice and counted
        twice.

        SES counts "the total number of recipients (To:, CC: and BCC:)" against the quota:
        https://docs.aws.amazon.com/ses/latest/APIReference/API_SendEmail.html.
        """
        return sum(map(len, map(listed, (self.recipient, self.cc, self.bcc))))

    def without(self, addressees: Container[str]) -> Self:
        """Return a copy of the mail without these addresses in to, cc and bcc."""
        name = "email" if self.to is None else "to"
        lists = {name: self.recipient, "cc": self.cc, "bcc": self.bcc}
        remaining = {
            attribute: [text for text in listed(addresses) if address.bare(text) not in addressees]
            for attribute, addresses in lists.items()
        }
        return structs.replace(self, **remaining)

    def redirected(self, to: str) -> Self:
        """Return a copy of the mail with `to` as its only recipient. A header lists the original recipients,
        if the number of headers allows another one.

        A mail to several recipients loses its topic, because only a mail to a single recipient may have an
        opt-out link.
        """
        headers = {name: value for name, value in self.headers.items() if name.lower() != ORIGINAL_TO.lower()}
        if len(headers) < MAX_OWN_HEADERS:
            headers[ORIGINAL_TO] = _named(self.addressees)
        topic = self.topic if len(self.addressees) == 1 else None
        return structs.replace(super().redirected(to), headers=headers, topic=topic)

    @property
    def headline(self) -> Mapping[str, str | int]:
        """The subject, if the content is in the item. Otherwise the subject is unknown until the template is
        rendered or the payload is read."""
        if self.inline:
            return {"subject": self.subject[:MAX_SUBJECT]} if self.subject else {}
        return super().headline

    @property
    def objects(self) -> list[tuple[str, str]]:
        """References to objects of the payload bucket: the payload and the attachments."""
        attachments = enumerate(self.attachments)
        return [*super().objects, *((f"attachments[{index}].ref", item.ref) for index, item in attachments)]

    @property
    def kind(self) -> str:
        """Form of the content: template, html or plaintext."""
        if self.inline:
            return "html" if self.html else "plaintext"
        return "template"

    @property
    def template_name(self) -> str | None:
        if self.inline:
            return None
        return self.template or (None if self.payload_ref else DEFAULT_TEMPLATE)

    @property
    def may_use(self) -> bool:
        return not self.inline

    def unused(self, used: Container[str]) -> list[str]:
        """Return the attributes that are not used. The attribute `subject` is one of them if the template
        sets the subject."""
        ignored = self.subject is not None and self.may_use and "subject" not in used
        return [*super().unused(used), *(["subject"] if ignored else [])]

    @property
    def inline(self) -> bool:
        """Whether the item itself holds the content, as `text` or `html`."""
        return self.text is not None or self.html is not None

    def check(self) -> None:
        super().check()
        self._check_recipients()
        if self.from_ is not None:
            normalised("from", self.from_)
        self._check_content()
        check_headers(self.headers, topical=self.topic is not None)
        self._check_attachments()

    def _check_recipients(self) -> None:
        name = "to" if self.to is not None else "email"
        if not self.recipient:
            raise Invalid("to", "is missing; set `to` (or `email`) to one address or a list of them")
        # The recipients are counted before any address is parsed, because an item can hold tens of thousands.
        if (count := self.recipient_count) > MAX_RECIPIENTS:
            raise Invalid(name, f"has {count} recipients, including cc and bcc; use at most {MAX_RECIPIENTS}")
        if (count := len(listed(self.reply_to))) > MAX_RECIPIENTS:
            raise Invalid("reply_to", f"has {count} addresses; use at most {MAX_RECIPIENTS}")
        for field_ in (name, "cc", "bcc", "reply_to"):
            normalised(field_, getattr(self, field_))

    def _check_attachments(self) -> None:
        content_ids = set[str]()
        for index, attachment in enumerate(self.attachments):
            attachment.check(place := f"attachments[{index}]")
            if (id_ := attachment.content_id) is None:
                continue
            if id_ in content_ids:
                raise Invalid(f"{place}.content_id", f"{id_} is used by another attachment; use another id")
            content_ids.add(id_)

    def check_images(self, html: str | None, names: Iterable[str] = ()) -> None:
        """Raise Invalid if the HTML refers to an image that is not among the mail's attachments, nor among
        the `names` of its template's files."""
        content_ids = {*names, *(attachment.content_id for attachment in self.attachments)}
        if missing := images_in(html) - content_ids:
            raise Invalid(
                "attachments",
                f"the HTML refers to cid:{min(missing):.78}, but no attachment has this content_id",
            )

    def _check_content(self) -> None:
        if self.subject is not None and address.has_control(self.subject):
            raise Invalid("subject", "holds a line break or control character; use one line of plain text")
        self.check_template("text or html" if self.inline else None)
        if self.template is None and self.payload_ref is None:
            if self.subject is None and self.inline:
                raise Invalid("subject", "is missing, but text or html is set; add it, or use a template")
            if self.subject is not None and not self.inline:
                raise Invalid("subject", "is set without text or html; add one, or use a template")


def images_in(html: str | None) -> set[str]:
    """Return the content ids of the attached images that the HTML shows."""
    # The pattern is slow, and few mails refer to an image.
    return {*_CID.findall(html)} if html is not None and "cid:" in html.lower() else set()


def _named(addressees: Sequence[str]) -> str:
    """Return a header's value with as many addresses as fit, and the number of addresses left out."""
    names, limit = list(addressees), MAX_HEADER - len(f"{ORIGINAL_TO} and {MAX_RECIPIENTS} more")
    while len(", ".join(names)) > limit:
        names.pop()
    further = len(addressees) - len(names)
    return ", ".join(names) + (f" and {further} more" if further else "")


def listed(addresses: Addresses | None) -> list[str]:
    """Return an attribute's address or addresses as a list, which is empty for a missing attribute."""
    if addresses is None:
        return []
    return [addresses] if isinstance(addresses, str) else addresses


def normalised(name: str, addresses: Addresses | None) -> list[str]:
    """Return an attribute's address or addresses as a list, in the form that SES accepts. Raises Invalid with
    the position of the invalid address in the attribute `name`."""
    texts = listed(addresses)
    return [_normalised(name, index, text, len(texts)) for index, text in enumerate(texts)]


def _normalised(name: str, index: int, text: str, count: int) -> str:
    try:
        return address.normalise(text)
    except ValueError as error:
        place = name if count == 1 else f"{name}[{index}]"
        raise Invalid(place, f"{text!r:.80} {error}") from None
