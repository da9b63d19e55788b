"""Converts values in providers' events (texts, times, phone numbers) to values of ledger attributes."""

import re
from typing import Any, TypeVar

import msgspec

from mailroom.clock import epoch
from mailroom.errors import MAX_DEPTH, Malformed, too_deep
from mailroom.message.address import to_e164
from mailroom.telemetry import logger, masked

T = TypeVar("T")

MAX_TEXT = 300
"""Maximum number of characters of an explanation in the ledger. The limit keeps the size of most items within
one write unit."""
MAX_WORD = 64
"""Maximum number of characters of an event's type or error code in the ledger."""
MAX_PROVIDER_ID = 200
LATEST_MS = 10**14
"""Limit of valid times, in epoch milliseconds (after the year 5000). A greater number must have another unit,
such as microseconds."""

_NUMBER = re.compile(r"\d{6,}(?=\d\d)")


def sentence(text: str) -> str:
    """Return an explanation as one line of at most MAX_TEXT characters. Mail addresses are masked, because
    the text of a bounce may quote another person's address."""
    return masked(" ".join(text[: 4 * MAX_TEXT].split())[:MAX_TEXT])[:MAX_TEXT]


def without_numbers(text: str) -> str:
    """Return an explanation as `sentence` does, with long numbers masked too, for channels whose recipients
    are phone numbers."""
    return _NUMBER.sub("…", sentence(text))


def word(text: str | None) -> str:
    """Return an event's type or error code as one line of at most MAX_WORD characters, or "" if it is
    missing."""
    return sentence(text or "")[:MAX_WORD]


def provider_id(text: str | None) -> str | None:
    """Return the provider's id of the message, or None if the id is missing or invalid."""
    return text if text and len(text) <= MAX_PROVIDER_ID and text.isprintable() else None


def time(name: str, text: str) -> int:
    """Convert an ISO 8601 time to epoch milliseconds. Raises Malformed; its message names the field
    `name`."""
    try:
        seconds = epoch(text)
    except (ValueError, OverflowError):
        raise Malformed(f"`{name}` is not an ISO 8601 time") from None
    # The time is rounded, because the float for 2 ms may be 1.9999999 ms, which int() would cut to 1 ms.
    return milliseconds(name, round(seconds * 1000))


def milliseconds(name: str, value: int) -> int:
    """Return a time in epoch milliseconds as a whole number. Raises Malformed if the time is out of range;
    the error's message names the field `name`."""
    if not 0 <= value < LATEST_MS:
        raise Malformed(f"`{name}` is not a time in epoch milliseconds")
    return value


def decoded(name: str, text: str) -> Any:
    """Decode JSON. Raises Malformed if the text is not JSON or is nested too deeply; `name` describes the
    text in the error's message."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Malformed(f"{name} is not JSON") from None
    if too_deep(text, value):
        raise Malformed(f"{name} has over {MAX_DEPTH} levels of lists and objects")
    return value


def convert(name: str, value: Any, kind: type[T]) -> T:
    """Convert the value to the type `kind`. Raises Malformed; `name` describes the value in the error's
    message."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        # The error is shortened, because msgspec quotes the value if it is not among the texts of a Literal.
        raise Malformed(f"{name}: {error!s:.200}") from None


def number(text: str | None, region: str) -> tuple[str, ...]:
    """Return a recipient's number in E.164, as a tuple that is empty if the number is missing or invalid.

    Numbers may be invalid because some providers mask them. Twilio's prefix `rcs:` of a number that was
    reached by RCS (`rcs:+16175551234`) is removed.
    """
    if not text:
        return ()
    try:
        return (to_e164(text.rpartition(":")[2], region or None),)
    except ValueError:
        logger.warning("the recipient of an event is not a valid number")
        return ()
