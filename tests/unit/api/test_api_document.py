"""The API's description."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from mailroom.api.document import text
from mailroom.channels.contracts import CONTRACTS, components_of
from tests.support.unit.api_requests import Api
from tests.support.unit.shared import Aws, FakeClock, item


@pytest.fixture
def document() -> Any:
    return json.loads(text())


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(references, node.values()))
    return set().union(*map(references, node)) if isinstance(node, list) else set()


def test_it_describes_the_routes_where_they_are(document: Any) -> None:
    assert document["openapi"].startswith("3.1")
    assert {(path, method) for path, methods in document["paths"].items() for method in methods} == {
        ("/messages", "post"),
        ("/messages", "get"),
        ("/messages/{id}", "get"),
        ("/messages/{id}/cancel", "post"),
        ("/messages/cancel", "post"),
    }


def test_whatever_it_refers_to_is_there(document: Any) -> None:
    there = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references(document) <= there


def test_nothing_is_described_that_nothing_refers_to(document: Any) -> None:
    there = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert there <= references(document)


def test_requests_are_signed_by_iam(document: Any) -> None:
    ((name, scheme),) = document["components"]["securitySchemes"].items()
    assert scheme["x-amazon-apigateway-authtype"] == "awsSigv4"
    assert document["security"] == [{name: []}]


@pytest.mark.parametrize("channel", CONTRACTS)
def test_a_schema_is_one_and_has_nothing_of_the_systems_own(channel: str) -> None:
    components = components_of([channel])
    own = components[CONTRACTS[channel].__name__]
    Draft202012Validator.check_schema(own)
    assert not {"variables", "attempt"} & own["properties"].keys()
    assert own["properties"]["event_type"] == {"const": channel}
    assert {"id", "event_type"} <= {*own["required"]}


def test_the_examples_are_right(aws: Aws, clock: FakeClock, document: Any) -> None:
    content = document["paths"]["/messages"]["post"]["requestBody"]["content"]["application/json"]
    validator = Draft202012Validator({**content["schema"], "components": document["components"]})
    for example in content["examples"].values():
        validator.validate(example["value"])
        assert Api(clock).post(example["value"]).status == 202


def test_a_message_that_the_schema_takes_is_not_refused_for_its_form(aws: Aws, clock: FakeClock) -> None:
    schema = components_of(["mail"])["Mail"]
    Draft202012Validator({**schema, "components": {"schemas": components_of(["mail"])}}).validate(item())
    assert Api(clock).post(item()).status == 202
