"""What a provider says (words, times, numbers), as it may stand in a ledger item."""

import re
from typing import Any, TypeVar

import msgspec

from mailroom.clock import epoch
from mailroom.errors import Malformed
from mailroom.message.address import to_e164
from mailroom.telemetry import logger, masked

T = TypeVar("T")

MAX_TEXT = 300
"""Characters of an explanation: an item stays near one write unit."""
MAX_WORD = 64
"""Characters of a type or code."""
MAX_PROVIDER_ID = 200
LATEST_MS = 10**14
"""Past the year 5000: what lies beyond is no time in epoch milliseconds."""

_NUMBER = re.compile(r"\d{6,}(?=\d\d)")


def sentence(text: str) -> str:
    """An explanation: one line, not endless, no whole mail address: a bounce may quote somebody else's."""
    return masked(" ".join(text[: 4 * MAX_TEXT].split())[:MAX_TEXT])[:MAX_TEXT]


def without_numbers(text: str) -> str:
    """An explanation without long numbers, for a channel whose recipients are numbers."""
    return _NUMBER.sub("…", sentence(text))


def word(text: str | None) -> str:
    """A type or code; "" for a missing one."""
    return sentence(text or "")[:MAX_WORD]


def provider_id(text: str | None) -> str | None:
    """The provider's name for the message; None where it cannot be one."""
    return text if text and len(text) <= MAX_PROVIDER_ID and text.isprintable() else None


def time(name: str, text: str) -> int:
    """Epoch milliseconds of an ISO 8601 time. Raises Malformed that names the field."""
    try:
        seconds = epoch(text)
    except (ValueError, OverflowError):
        raise Malformed(f"`{name}` is no ISO 8601 time") from None
    # Rounded: as a float the millisecond may be a hair short of itself.
    return milliseconds(name, round(seconds * 1000))


def milliseconds(name: str, value: int) -> int:
    """Epoch milliseconds, as a provider counts them too. Raises Malformed that names the field."""
    if not 0 <= value < LATEST_MS:
        raise Malformed(f"`{name}` is no time in epoch milliseconds")
    return value


def convert(name: str, value: Any, kind: type[T]) -> T:
    """The value as `kind`. Raises Malformed that names it, and never quotes it."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Malformed(f"{name}: {error!s:.200}") from None  # it may quote a word where it knows all words


def number(text: str | None, region: str) -> tuple[str, ...]:
    """The number of an SMS in E.164; () if it cannot be read: some providers hide it. Twilio writes a number
    of RCS as `rcs:+16175551234`."""
    if not text:
        return ()
    try:
        return (to_e164(text.rpartition(":")[2], region or None),)
    except ValueError:
        logger.warning("the recipient of an event cannot be read")
        return ()
