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
def test_its_example_is_an_item_that_its_contract_and_its_schema_take(name: str, channel: Channel) -> None:
    example: dict[str, Any] = {"id": "an-example", "event_type": name, **channel.example}
    if name == "webhook":
        example["payload"] = {"order": 42}  # the example is for a form, which can contain only text
    assert parse(example, {name: channel.contract}).event_type == name
    assert [*Draft202012Validator(schema_of(name)).iter_errors(example)] == []


@every
def test_its_schema_refuses_an_item_that_says_nothing(name: str, channel: Channel) -> None:
    nothing = {"id": "an-example", "event_type": name}
    assert [*Draft202012Validator(schema_of(name)).iter_errors(nothing)]
    assert channel.choices
    assert schema_of(name)["allOf"] == channel.choices


@every
def test_people_have_words_for_it(name: str, channel: Channel) -> None:
    assert channel.messages[:1].isupper(), name
    assert channel.providers
    assert channel.sent.endswith(".")


@every
def test_what_it_names_is_there(name: str, channel: Channel) -> None:
    for place in (channel.checks or {}).values():
        assert callable(resolve_name(place)), (name, place)
    if channel.simulator:
        assert resolve_name(channel.simulator).prefix == f"/{name}"
