"""Tests that every channel's descriptor is complete. A missing part is reported here, and not later.

A project runs them on its own channels: python -m pytest --pyargs mailroom_ops.testing, in its folder.
"""

from pkgutil import resolve_name
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no py.typed

from mailroom.channels.channel import Channel
from mailroom.channels.contracts import CHANNELS
from mailroom.message.message import parse
from mailroom.providers.registry import PROVIDERS
from mailroom_ops.setup.schema import schema_of

every = pytest.mark.parametrize(("name", "channel"), CHANNELS.items(), ids=CHANNELS)


@every
def test_the_example_of_a_channel_is_valid(name: str, channel: Channel) -> None:
    example: dict[str, Any] = {"id": "an-example", "event_type": name, **channel.example}
    if name == "webhook":
        example["payload"] = {"order": 42}  # the example is for a form, which can contain only text
    assert parse(example, {name: channel.contract}).event_type == name
    assert [*Draft202012Validator(schema_of(name)).iter_errors(example)] == []


@every
def test_the_schema_of_a_channel_rejects_an_item_without_attributes(name: str, channel: Channel) -> None:
    nothing = {"id": "an-example", "event_type": name}
    assert [*Draft202012Validator(schema_of(name)).iter_errors(nothing)]
    assert channel.choices
    assert schema_of(name)["allOf"] == channel.choices


@every
def test_the_texts_about_a_channel_for_people_are_complete(name: str, channel: Channel) -> None:
    assert channel.messages[:1].isupper(), name
    assert channel.providers or [row for row in PROVIDERS.values() if row.channel == name]
    assert channel.sent.endswith(".")


@every
def test_the_functions_that_a_channel_names_exist(name: str, channel: Channel) -> None:
    for place in (channel.checks or {}).values():
        assert callable(resolve_name(place)), (name, place)
    for provider in channel.providers.values():
        if provider.simulator:
            assert resolve_name(provider.simulator).prefix == f"/{name}"
