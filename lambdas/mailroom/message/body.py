"""The body of a queue message: the item itself, as JSON."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from mailroom.errors import Malformed

_encoder = msgspec.json.Encoder(decimal_format="number")
_decoder = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)


def encode(item: Mapping[str, Any]) -> str:
    """An item as a queue body; numbers keep all their digits."""
    text = _encoder.encode(item).decode()
    # The two characters that DynamoDB and JSON take and SQS does not.
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def scheduled(text: str) -> dict[str, Any]:
    """What a schedule sent to a queue. What EventBridge could not send lies in the dead-letter queue as the
    call that it would have made, and is redriven so. Raises Malformed."""
    body = decode(text)
    inner = body.get("MessageBody")
    return decode(inner) if isinstance(inner, str) and "QueueUrl" in body else body


def decode(text: str) -> dict[str, Any]:
    """A queue body as an item. Raises Malformed."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ArithmeticError) as error:
        # ArithmeticError: a number beyond what even a Decimal takes, such as 1E+99999999999999999999.
        raise Malformed(f"the body is not a JSON object: {error}") from None
