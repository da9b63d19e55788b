"""The contract as JSON Schema: printed, kept in docs/, and of one mind with the model."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no py.typed
from typer.testing import CliRunner

from mailroom.channels.contracts import CONTRACTS
from mailroom.errors import Invalid
from mailroom.message.message import OURS, parse
from mailroom_ops.cli import app
from mailroom_ops.setup.schema import schema_of, schema_of_event
from tests.support import ROOT

SCHEMA = schema_of("mail")
VALIDATOR = Draft202012Validator(SCHEMA)
ITEM = {"id": "m-1", "event_type": "mail", "to": "ada@example.com"}


@pytest.mark.parametrize("channel", CONTRACTS)
def test_the_schema_of_each_channel_that_the_command_prints_equals_the_committed_file(channel: str) -> None:
    printed = CliRunner().invoke(app, ["schema", channel])
    assert printed.exit_code == 0
    kept = ROOT / "docs" / "reference" / f"{channel}.schema.json"
    same = printed.stdout == kept.read_text()
    assert same, f"{kept.name} is not what the contract says; run `make schema` and commit the file."


def test_the_committed_schema_of_events_equals_the_printed_one_and_requires_only_common_fields() -> None:
    printed = CliRunner().invoke(app, ["schema", "--event"])
    assert printed.exit_code == 0
    same = printed.stdout == (ROOT / "docs" / "reference" / "event.schema.json").read_text()
    assert same, (
        "docs/reference/event.schema.json is not what the event has; run `make schema` and commit the file."
    )
    event = {"event_id": "msg_1", "id": "m-1", "event_type": "mail", "status": "sent", "attempt": 1}
    event_schema = Draft202012Validator(json.loads(printed.stdout))
    assert event_schema.is_valid({**event, "timestamp": 1795251600})
    assert not event_schema.is_valid(event)


@pytest.mark.parametrize("words", [[], ["mail", "--event"], ["--command", "status", "--event"]])
def test_the_command_schema_refuses_arguments_other_than_exactly_one_name(words: list[str]) -> None:
    assert CliRunner().invoke(app, ["schema", *words]).exit_code == 2


def test_the_command_schema_refuses_an_unknown_channel_and_names_the_existing_ones() -> None:
    result = CliRunner().invoke(app, ["schema", "pigeon"])
    assert result.exit_code == 2
    assert "no channel 'pigeon'; there are: mail" in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("document", [*map(schema_of, CONTRACTS), schema_of_event()])
def test_a_description_in_a_schema_has_lines_without_indentation(document: dict[str, Any]) -> None:
    parts = [document, *document["$defs"].values()]
    assert not [part for part in parts if "\n " in part["description"]]


def test_the_schema_of_each_channel_is_a_valid_json_schema() -> None:
    for channel in CONTRACTS:
        assert Draft202012Validator(Draft202012Validator.META_SCHEMA).is_valid(schema_of(channel)), channel


@pytest.mark.parametrize(
    "attributes",
    [
        {"first_name": "Ada", "age": 7, "order": {"lines": [1, None, True]}},
        {"to": ["a@example.com", "b@example.com"], "cc": "c@example.com", "bcc": [], "reply_to": None},
        {"subject": "Hello", "html": "<p>", "from": "Mailroom <mailroom@example.com>"},
        {"lane": "bulk", "ttl": 1795251600, "send_at": "2026-11-21T09:00:00+01:00"},
        {"headers": {"X-Order": "7"}, "attachments": [{"ref": "s3://b/k", "filename": "k.pdf"}]},
    ],
)
def test_the_schema_of_mail_accepts_valid_attributes(attributes: dict[str, Any]) -> None:
    assert VALIDATOR.is_valid(ITEM | attributes)


BAD: dict[str, tuple[str, dict[str, Any]]] = {
    "no id": ("id", {"id": None}),
    "an empty id": ("id", {"id": ""}),
    "an id too long": ("id", {"id": "x" * 181}),
    "another channel": ("event_type", {"event_type": "pigeon"}),
    "a number for an address": ("to", {"to": 7}),
    "a number among addresses": ("to", {"to": ["a@example.com", 7]}),
    "a map for a subject": ("subject", {"subject": {"en": "Hello"}}),
    "a number for a time": ("send_at", {"send_at": 1795251600}),
    "a word for a ttl": ("ttl", {"ttl": "soon"}),
    "a fraction for a ttl": ("ttl", {"ttl": 1795251600.5}),
    "no such lane": ("lane", {"lane": "express"}),
    "no such status": ("unless", {"unless": {"id": "x", "event_type": "sms", "status": "deliverd"}}),
    "a list for headers": ("headers", {"headers": ["X-Order: 7"]}),
    "a number in a header": ("headers", {"headers": {"X-Order": 7}}),
    "an attachment without a ref": ("attachments", {"attachments": [{"filename": "k.pdf"}]}),
    "a misspelt part of an attachment": ("attachments", {"attachments": [{"ref": "s3://b/k", "name": "k"}]}),
}


@pytest.mark.parametrize(("name", "attributes"), BAD.values(), ids=BAD)
def test_the_schema_of_mail_refuses_a_bad_item_and_names_the_attribute(
    name: str, attributes: dict[str, Any]
) -> None:
    (error,) = VALIDATOR.iter_errors(ITEM | attributes)
    assert error.path[0] == name


@pytest.mark.parametrize("missing", ["id", "event_type", "to"])
def test_the_schema_of_mail_refuses_an_item_without_a_required_attribute(missing: str) -> None:
    assert not VALIDATOR.is_valid({name: value for name, value in ITEM.items() if name != missing})


words = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=12)
addresses = st.sampled_from(["ada@example.com", "Ada <a@b.example>", "nobody"])
scalars = st.none() | st.booleans() | st.integers(-10, 2**40) | st.just(1.5) | words
values = st.recursive(
    scalars | addresses | st.sampled_from(["bulk", "2026-11-21T09:00:00Z", "s3://b/k"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.just("ref"), inner, max_size=3),
    max_leaves=4,
)
names = st.sampled_from(sorted(SCHEMA["properties"])) | words
attributes_of_a_mail = st.dictionaries(
    names.filter(lambda name: name not in {"id", "event_type", *OURS}), values, max_size=3
)
"""Without Mailroom's own attributes, which the schema leaves out."""


@given(attributes_of_a_mail)
@settings(max_examples=40)
def test_the_schema_and_the_contract_of_mail_agree_on_the_types_of_attributes(
    attributes: dict[str, Any],
) -> None:
    item = ITEM | attributes
    fault = fault_of(item)
    if VALIDATOR.is_valid(item):
        assert fault is None or not fault.problem.startswith("expected "), fault
    else:
        assert fault is not None


def fault_of(item: dict[str, Any]) -> Invalid | None:
    """Return the model's errors of an item, with numbers as DynamoDB returns them."""
    numbers = json.loads(json.dumps(item), parse_float=Decimal)
    try:
        parse(numbers, CONTRACTS)
    except Invalid as fault:
        return fault
    return None
