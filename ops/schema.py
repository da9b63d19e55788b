"""The contract of an item as JSON Schema, for producers in any language."""

import inspect
from typing import Any

import msgspec

from mailroom.channels.contracts import CONTRACTS
from mailroom.reference import MAX_ID_BYTES

_OURS = ("variables", "attempt")
"""Fields of the model that no producer writes."""


_CHOICES: dict[str, list[dict[str, Any]]] = {
    "mail": [{"anyOf": [{"required": ["to"]}, {"required": ["email"]}]}],
    "sms": [
        {"required": ["to"]},
        {"anyOf": [{"required": [name]} for name in ("text", "template", "media_urls", "payload_ref")]},
    ],
    "push": [
        {"required": ["to"]},
        {"anyOf": [{"required": [name]} for name in ("title", "body", "data", "payload_ref")]},
    ],
    "fax": [{"required": ["to"]}, {"oneOf": [{"required": ["pdf_url"]}, {"required": ["payload_ref"]}]}],
    "webhook": [{"anyOf": [{"required": ["payload"]}, {"required": ["payload_ref"]}]}],
}
"""What the types alone do not say of a channel's items."""


def schema_of(channel: str) -> dict[str, Any]:
    """The JSON Schema of a channel's items. Raises KeyError with the channels there are."""
    if channel not in CONTRACTS:
        raise KeyError(f"no channel {channel!r}; there are: {', '.join(CONTRACTS)}")
    contract = CONTRACTS[channel]
    schema = msgspec.json.schema(contract)
    definitions: dict[str, Any] = schema["$defs"]
    item: dict[str, Any] = definitions.pop(contract.__name__)
    for name in _OURS:
        del item["properties"][name]
    item["properties"]["event_type"] = {"const": channel}
    item["properties"]["id"] |= {"minLength": 1, "maxLength": MAX_ID_BYTES}
    item["description"] = inspect.cleandoc(item["description"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **item,
        "allOf": _CHOICES.get(channel, []),
        "additionalProperties": True,  # a template's variables, for one
        "$defs": definitions,
    }
