"""Table of all channels, and the JSON Schemas of the items in each channel."""

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
"""Descriptors of all channels by `event_type`, including the channels added by the deployer."""
for _name, _module in json.loads(os.environ.get(OWN_CHANNELS) or "{}").items():
    CHANNELS[_name] = import_module(_module).CHANNEL
CONTRACTS: dict[str, type[Message]] = {name: channel.contract for name, channel in CHANNELS.items()}


def contracts_of(default_region: str) -> dict[str, type[Message]]:
    """Return the contracts of a stage by `event_type`. In text messages, a phone number without a country
    code belongs to `default_region` (ISO 3166, such as US), or is invalid if `default_region` is empty."""
    return {**CONTRACTS, "sms": sms_in(default_region)}


UNDELAYED = frozenset(name for name, channel in CHANNELS.items() if not channel.delayable)
"""Channels whose queue cannot delay a message. In items of these channels only the function `dispatch` may
set the attribute `not_before`."""
ID_BOUNDS: dict[str, Any] = {
    "minLength": 1,
    "maxLength": MAX_ID_BYTES,
    "pattern": r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$",
}
"""JSON Schema of an id, which excludes control characters. Mailroom limits the bytes of an id; JSON Schema
can only limit the characters."""
REFERENCES = "#/components/schemas/{name}"
"""Format of a `$ref` to a component of the API's OpenAPI document."""


def component_of(channel: str) -> str:
    """Return the name of the OpenAPI component with the schema of a channel's items."""
    return CONTRACTS[channel].__name__


def components_of(channels: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the OpenAPI components for the items of these channels, by name: the schemas of the items, and
    the schemas that an item's schema refers to."""
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
        "required": contract["required"],
        **({"allOf": CHANNELS[channel].choices} if CHANNELS[channel].choices else {}),
        "additionalProperties": True,  # additional attributes, such as variables of a template
    }
