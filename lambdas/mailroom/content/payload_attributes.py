"""Adds the attributes in the payload of a message to the attributes of its item."""

from typing import Any

from mailroom.content.payloads import MAX_PAYLOAD_BYTES, MAX_PAYLOAD_VALUES, Payloads, values_in
from mailroom.errors import Invalid, Malformed, check_variables
from mailroom.message.message import Message, decode

ROUTING = (
    *("send_at", "unless", "expires_at", "window", "lane", "topic", "callback_url"),
    *("payload_ref", "ttl", "attempt"),
)
"""Attributes that a payload must not contain, because they have taken effect before the payload is read."""


def expanded(payloads: Payloads, message: Message, ref: str) -> dict[str, Any]:
    """Return the message's item together with the attributes in its payload, which is the object `ref`.
    Raises Invalid, also if the payload contains a recipient or one of ROUTING."""
    content = payloads.read("payload_ref", ref, MAX_PAYLOAD_BYTES)
    if message.template_name is not None:
        check_variables("payload_ref", len(content))
    values = values_in(content)
    if values > MAX_PAYLOAD_VALUES:
        raise Invalid(
            "payload_ref",
            f"has {values} values, counted by commas and brackets; use at most {MAX_PAYLOAD_VALUES}",
        )
    try:
        payload = decode(content)
    except Malformed as fault:
        raise Invalid("payload_ref", f"{fault}".removeprefix("the body ")) from None
    for name in (*ROUTING, *message.addressing):
        if name in payload:
            raise Invalid("payload_ref", f"contains {name}, which is only allowed in the item")
    item = dict(message.variables)
    del item["payload_ref"]
    return {**payload, **item}
