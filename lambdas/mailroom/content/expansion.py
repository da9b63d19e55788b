"""Reads the payload of a message, and adds its attributes to those of the item."""

from typing import Any

from mailroom.content.payloads import MAX_PAYLOAD_BYTES, MAX_PAYLOAD_VALUES, Payloads, values_in
from mailroom.errors import Invalid, Malformed, check_variables
from mailroom.message.message import Message, decode

ROUTING = (
    *("send_at", "unless", "expires_at", "window", "lane", "topic", "callback_url"),
    *("payload_ref", "ttl", "attempt"),
)
"""Attributes that had an effect before the payload is read."""


def expanded(payloads: Payloads, message: Message, ref: str) -> dict[str, Any]:
    """Return the item with the attributes of its payload, the object `ref`. Raises Invalid, also for an
    attribute that counts in the item alone: it had an effect before, or is a recipient."""
    content = payloads.read("payload_ref", ref, MAX_PAYLOAD_BYTES)
    if message.template_name is not None:
        check_variables("payload_ref", len(content))
    values = values_in(content)
    if values > MAX_PAYLOAD_VALUES:
        raise Invalid(
            "payload_ref",
            f"has {values} values, by its commas and brackets; use at most {MAX_PAYLOAD_VALUES}",
        )
    try:
        payload = decode(content)
    except Malformed as fault:
        raise Invalid("payload_ref", f"{fault}".removeprefix("the body ")) from None
    for name in (*ROUTING, *message.addressing):
        if name in payload:
            raise Invalid("payload_ref", f"{name} stands in the payload; it counts in the item alone")
    item = dict(message.variables)
    del item["payload_ref"]
    return {**payload, **item}
