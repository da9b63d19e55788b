"""Tests that every channel's descriptor is complete. A missing part is reported here, and not later."""

from pkgutil import resolve_name
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no py.typed

from mailroom.channels.channel import Channel
from mailroom.channels.contracts import CHANNELS
from mailroom.message.message import parse
from mailroom_ops.setup.schema import schema_of

every = pytest.mark.parametrize(("name", "channel"), CHANNELS.items(), ids=CHANNELS)


@every
def test_the_example_of_a_channel_is_valid_by_the_contract_and_the_schema_of_the_channel(
    name: str, channel: Channel
) -> None:
    example: dict[str, Any] = {"id": "an-example", "event_type": name, **channel.example}
    if name == "webhook":
        example["payload"] = {"order": 42}  # the example is for a form, which can contain only text
    assert parse(example, {name: channel.contract}).event_type == name
    assert [*Draft202012Validator(schema_of(name)).iter_errors(example)] == []


@every
def test_the_schema_of_a_channel_refuses_an_item_without_content(name: str, channel: Channel) -> None:
    nothing = {"id": "an-example", "event_type": name}
    assert [*Draft202012Validator(schema_of(name)).iter_errors(nothing)]
    assert channel.choices
    assert schema_of(name)["allOf"] == channel.choices


@every
def test_a_channel_has_texts_about_its_messages_its_providers_and_the_status_sent(
    name: str, channel: Channel
) -> None:
    assert channel.messages[:1].isupper(), name
    assert channel.providers
    assert channel.sent.endswith(".")


@every
def test_the_checks_and_the_simulator_that_a_channel_names_can_be_imported(
    name: str, channel: Channel
) -> None:
    for place in (channel.checks or {}).values():
        assert callable(resolve_name(place)), (name, place)
    if channel.simulator:
        assert resolve_name(channel.simulator).prefix == f"/{name}"
