"""The table of channels, and the JSON Schema of their items."""

import inspect
import json
import os
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import msgspec

from mailroom.channels import OWN_CHANNELS, fax, mail, push, sms, webhook
from mailroom.channels.channel import Channel
from mailroom.channels.sms.contract import sms_in
from mailroom.message.message import MAX_ID_BYTES, OURS, Message

CHANNELS: dict[str, Channel] = {
    "mail": mail.CHANNEL,
    "sms": sms.CHANNEL,
    "push": push.CHANNEL,
    "fax": fax.CHANNEL,
    "webhook": webhook.CHANNEL,
}
"""The descriptors by `event_type`, the deployer's own channels included."""
for _name, _module in json.loads(os.environ.get(OWN_CHANNELS) or "{}").items():
    CHANNELS[_name] = import_module(_module).CHANNEL
CONTRACTS: dict[str, type[Message]] = {name: channel.contract for name, channel in CHANNELS.items()}


def contracts_of(default_region: str) -> dict[str, type[Message]]:
    """Return the contracts of a stage. Numbers of text messages without a country code belong to
    `default_region` (ISO 3166, such as US); if that is empty, such numbers are invalid."""
    return {**CONTRACTS, "sms": sms_in(default_region)}


UNDELAYED = frozenset(name for name, channel in CHANNELS.items() if not channel.delayable)
"""Channels whose queue cannot delay a message. In their items `not_before` is reserved for dispatch."""
ID_BOUNDS: dict[str, Any] = {
    "minLength": 1,
    "maxLength": MAX_ID_BYTES,
    "pattern": r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$",
}
"""JSON Schema of an id: no control characters. The real limit is in bytes, which JSON Schema cannot count."""
REFERENCES = "#/components/schemas/{name}"
"""Template of a `$ref` to a component of the API's document."""


def component_of(channel: str) -> str:
    """Return the name of a channel's schema among the components."""
    return CONTRACTS[channel].__name__


def components_of(channels: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the schemas of these channels' items, and the schemas that they refer to, by name."""
    names = list(channels)
    _, components = msgspec.json.schema_components(
        [CONTRACTS[channel] for channel in names], ref_template=REFERENCES
    )
    schemas: dict[str, dict[str, Any]] = dict(components)
    for channel in names:
        schemas[component_of(channel)] |= _item(channel, schemas[component_of(channel)])
    return schemas


def _item(channel: str, contract: dict[str, Any]) -> dict[str, Any]:
    properties = {name: schema for name, schema in contract["properties"].items() if name not in OURS}
    properties["event_type"] = {"const": channel}
    properties["id"] |= ID_BOUNDS
    return {
        "description": inspect.cleandoc(contract["description"]),
        "properties": properties,
        # `id` is optional in a request to the API: the header Idempotency-Key may hold it.
        "required": [name for name in contract["required"] if name != "id"],
        **({"allOf": CHANNELS[channel].choices} if CHANNELS[channel].choices else {}),
        "additionalProperties": True,  # such as variables of a template
    }
