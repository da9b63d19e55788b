"""The contract of an item as JSON Schema, for producers in any language."""

import inspect
from typing import Any

import msgspec

from mailroom.channels.contracts import CHOICES, CONTRACTS, OURS
from mailroom.message.reference import MAX_ID_BYTES


def schema_of(channel: str) -> dict[str, Any]:
    """The JSON Schema of a channel's items. Raises KeyError with the channels there are."""
    if channel not in CONTRACTS:
        raise KeyError(f"no channel {channel!r}; there are: {', '.join(CONTRACTS)}")
    contract = CONTRACTS[channel]
    schema = msgspec.json.schema(contract)
    definitions: dict[str, Any] = schema["$defs"]
    item: dict[str, Any] = definitions.pop(contract.__name__)
    for name in OURS:
        del item["properties"][name]
    item["properties"]["event_type"] = {"const": channel}
    item["properties"]["id"] |= {"minLength": 1, "maxLength": MAX_ID_BYTES}
    item["description"] = inspect.cleandoc(item["description"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **item,
        **({"allOf": CHOICES[channel]} if channel in CHOICES else {}),
        "additionalProperties": True,  # a template's variables, for one
        "$defs": definitions,
    }
