"""The table of channels, and the JSON Schema of what each takes."""

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
"""A row for each `event_type`."""
for _name, _module in json.loads(os.environ.get(OWN_CHANNELS) or "{}").items():
    CHANNELS[_name] = import_module(_module).CHANNEL
CONTRACTS: dict[str, type[Message]] = {name: each.contract for name, each in CHANNELS.items()}


def contracts_of(default_region: str) -> dict[str, type[Message]]:
    """The contracts of a stage: numbers of text messages may lack a country, which is then `default_region`
    (ISO 3166, such as US); "": none may."""
    return {**CONTRACTS, "sms": sms_in(default_region)}


UNDELAYED = frozenset(name for name, each in CHANNELS.items() if not each.delayable)
"""Channels whose queue cannot delay a message: dispatch keeps an attribute of theirs to itself."""
ID_BOUNDS: dict[str, Any] = {
    "minLength": 1,
    "maxLength": MAX_ID_BYTES,
    "pattern": r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$",
}
"""No control characters; the most it may be is counted in bytes."""
REFERENCES = "#/components/schemas/{name}"


def component_of(channel: str) -> str:
    """The name of a channel's schema among the components."""
    return CONTRACTS[channel].__name__


def components_of(channels: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The schemas of these channels' items, and those that they refer to, by name."""
    names = list(channels)
    _, components = msgspec.json.schema_components(
        [CONTRACTS[each] for each in names], ref_template=REFERENCES
    )
    schemas: dict[str, dict[str, Any]] = dict(components)
    for channel in names:
        schemas[component_of(channel)] |= _item(channel, schemas[component_of(channel)])
    return schemas


def _item(channel: str, contract: dict[str, Any]) -> dict[str, Any]:
    properties = {name: each for name, each in contract["properties"].items() if name not in OURS}
    properties["event_type"] = {"const": channel}
    properties["id"] |= ID_BOUNDS
    return {
        "description": inspect.cleandoc(contract["description"]),
        "properties": properties,
        # An id may come from the Idempotency-Key instead.
        "required": [name for name in contract["required"] if name != "id"],
        **({"allOf": CHANNELS[channel].choices} if CHANNELS[channel].choices else {}),
        "additionalProperties": True,  # a template's variables, for one
    }
