"""The headers that a mail may bring along, and those that are made here."""

import re
from typing import Any

from mailroom.errors import Invalid
from mailroom.message.address import has_control

MAX_OWN_HEADERS = 12
"""SES v2 takes 15 a mail. X-Correlation-ID is ours, and so are two of a mail with a topic."""
HEADER_NAME = re.compile(r"[!-9;-@A-~]{1,126}")
HEADER_VALUE = re.compile(r"[ -~]{1,995}")
UNSUBSCRIBE, UNSUBSCRIBE_POST = "List-Unsubscribe", "List-Unsubscribe-Post"
"""The headers of RFC 8058: where to opt out, and that it takes one click, which is what ONE_CLICK says."""
ONE_CLICK = "List-Unsubscribe=One-Click"

_RESERVED = {"from", "to", "cc", "bcc", "subject", "reply-to", "sender", "return-path", "date"} | {
    *("message-id", "mime-version", "received", "dkim-signature"),
    "x-correlation-id",
}
_OF_TOPICS = {UNSUBSCRIBE.lower(), UNSUBSCRIBE_POST.lower()}
_RESERVED_PREFIXES = ("content-", "x-ses-", "resent-", "arc-")


def check_headers(headers: dict[str, Any], *, topical: bool = False) -> None:
    """Raise Invalid for a header that SES refuses, that would break out of its line, or that is ours; of a
    mail with a topic those for opting out are ours as well."""
    if len(headers) > MAX_OWN_HEADERS:
        raise Invalid("headers", f"has {len(headers)} entries; use at most {MAX_OWN_HEADERS}")
    for name, value in headers.items():
        fault = _name_fault(name, topical=topical) or _value_fault(value)
        if fault:
            shown = name[:126]
            raise Invalid(f"headers.{shown!r}" if has_control(shown) else f"headers.{shown}", fault)


def _name_fault(name: str, *, topical: bool) -> str | None:
    lower = name.lower()
    if not HEADER_NAME.fullmatch(name):
        return "is not a header's name; use printable ASCII without a colon or space"
    if lower in _RESERVED or lower.startswith(_RESERVED_PREFIXES):
        return "is a reserved header; use the item's own attributes, or another name"
    if topical and lower in _OF_TOPICS:
        return "is made here for a mail with a topic; leave it out, or the topic"
    return None


def _value_fault(value: Any) -> str | None:
    if not isinstance(value, str):
        return "is not a string; use one"
    if not HEADER_VALUE.fullmatch(value):
        return "is not a header's value; use 1 to 995 of printable ASCII, no line break"
    return None
