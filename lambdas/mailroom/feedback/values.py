"""Converts values of providers' events (texts, times, numbers) to the forms of the ledger's attributes."""

import re
from typing import Any, TypeVar

import msgspec

from mailroom.clock import epoch
from mailroom.errors import MAX_DEPTH, Malformed, too_deep
from mailroom.message.address import to_e164
from mailroom.telemetry import logger, masked

T = TypeVar("T")

MAX_TEXT = 300
"""Characters of an explanation. With this limit an item needs hardly more than one write unit."""
MAX_WORD = 64
"""Characters of a type or code."""
MAX_PROVIDER_ID = 200
LATEST_MS = 10**14
"""End of valid times, in epoch milliseconds, after the year 5000. A greater number has another unit."""

_NUMBER = re.compile(r"\d{6,}(?=\d\d)")


def sentence(text: str) -> str:
    """Return an explanation as one line of at most MAX_TEXT characters, its mail addresses masked: a bounce
    may quote another person's address."""
    return masked(" ".join(text[: 4 * MAX_TEXT].split())[:MAX_TEXT])[:MAX_TEXT]


def without_numbers(text: str) -> str:
    """Return an explanation with long numbers masked too, for channels whose recipients are numbers."""
    return _NUMBER.sub("…", sentence(text))


def word(text: str | None) -> str:
    """Return a type or code as one line of at most MAX_WORD characters, empty if the text is missing."""
    return sentence(text or "")[:MAX_WORD]


def provider_id(text: str | None) -> str | None:
    """Return the provider's id of the message, or None if the text is missing or invalid as an id."""
    return text if text and len(text) <= MAX_PROVIDER_ID and text.isprintable() else None


def time(name: str, text: str) -> int:
    """Return the epoch milliseconds of an ISO 8601 time in the field `name`. Raises Malformed."""
    try:
        seconds = epoch(text)
    except (ValueError, OverflowError):
        raise Malformed(f"`{name}` is no ISO 8601 time") from None
    # int() would cut 1.9999999 ms, which a float may hold for 2 ms, to 1 ms.
    return milliseconds(name, round(seconds * 1000))


def milliseconds(name: str, value: int) -> int:
    """Return a time in epoch milliseconds from the field `name`. Raises Malformed if the time is out of
    range."""
    if not 0 <= value < LATEST_MS:
        raise Malformed(f"`{name}` is no time in epoch milliseconds")
    return value


def decoded(name: str, text: str) -> Any:
    """Decode JSON. Raises Malformed if the text, which the message calls `name`, is not JSON, or too deep."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Malformed(f"{name} is not JSON") from None
    if too_deep(text, value):
        raise Malformed(f"{name} has over {MAX_DEPTH} levels of lists and objects")
    return value


def convert(name: str, value: Any, kind: type[T]) -> T:
    """Convert the value to the type `kind`. Raises Malformed; `name` describes the value in the message."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        # Shortened: msgspec quotes a text that is not among the texts of a Literal, and no other values.
        raise Malformed(f"{name}: {error!s:.200}") from None


def number(text: str | None, region: str) -> tuple[str, ...]:
    """Return a recipient's number in E.164; the tuple is empty if the number is missing or invalid.

    Some providers mask numbers. For RCS, Twilio writes `rcs:+16175551234`.
    """
    if not text:
        return ()
    try:
        return (to_e164(text.rpartition(":")[2], region or None),)
    except ValueError:
        logger.warning("the recipient of an event cannot be read")
        return ()
