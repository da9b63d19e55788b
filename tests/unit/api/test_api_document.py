"""The API's description."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from mailroom.channels.contracts import CONTRACTS
from mailroom.message.message import OURS
from tests.support.api_description import FILE, description
from tests.support.unit.api_requests import Api
from tests.support.unit.shared import Aws, FakeClock


@pytest.fixture
def document() -> Any:
    return json.loads(FILE.read_text())


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(references, node.values()))
    return set().union(*map(references, node)) if isinstance(node, list) else set()


def test_the_committed_openapi_file_equals_the_generated_description() -> None:
    assert FILE.read_text() == description(), "run `make schema` and commit the file."


def test_each_reference_in_the_openapi_description_has_its_schema_and_each_schema_a_reference(
    document: Any,
) -> None:
    components = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references(document) == components


@pytest.mark.parametrize("channel", CONTRACTS)
def test_the_openapi_schema_of_each_channel_is_valid_and_lacks_the_attributes_that_mailroom_sets(
    channel: str, document: Any
) -> None:
    own = document["components"]["schemas"][CONTRACTS[channel].__name__]
    Draft202012Validator.check_schema(own)
    assert not {*OURS} & own["properties"].keys()
    assert own["properties"]["event_type"] == {"const": channel}
    assert {"id", "event_type"} <= {*own["required"]}


def test_the_examples_of_the_description_are_valid_and_accepted_by_the_api(
    aws: Aws, clock: FakeClock, document: Any
) -> None:
    content = document["paths"]["/messages"]["post"]["requestBody"]["content"]["application/json"]
    validator = Draft202012Validator({**content["schema"], "components": document["components"]})
    for example in content["examples"].values():
        validator.validate(example["value"])
        assert Api(clock).post(example["value"]).status == 202
