"""The API against its own description: no answer that it does not describe, and none of 500."""

import warnings
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.openapi import from_wsgi
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.unit.api_requests import Api
from tests.support.unit.api_server import DESCRIPTION, Server
from tests.support.unit.shared import Aws, FakeClock, item

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = {
    "POST /messages": 60,
    "GET /messages": 25,
    "GET /messages/{id}": 25,
    "POST /messages/{id}/cancel": 25,
    "POST /messages/cancel": 25,
}
THERE = ("waiting #1", "ready", "two/of them", "ü ")
RIGHT: dict[str, dict[str, Any]] = {
    "mail": {"to": "ada@example.com"},
    "sms": {"to": "+16175551234", "text": "Hello"},
    "push": {"to": "token", "title": "Hello"},
    "fax": {"to": "+16175551234", "pdf_url": "https://files.example/1.pdf"},
    "webhook": {"url": "https://hooks.example.com/1", "payload": 1},
}


@pytest.fixture
def schema(aws: Aws, clock: FakeClock) -> Iterator[Any]:
    api = Api(clock)
    for id_ in THERE:
        api.post(item(id=id_, **({"send_at": "2027-01-01T00:00:00Z"} if "waiting" in id_ else {})))
    api.post({"id": "two/of them", "event_type": "fax", **RIGHT["fax"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from_wsgi(DESCRIPTION, Server(api))


def operation(schema: Any, label: str) -> Any:
    return next(each.ok() for each in schema.get_all_operations() if each.ok().label == label)


def made_right(body: Any) -> Any:
    """A body whose entries say enough of what their channel wants to come further than the first check."""
    if not isinstance(body, dict):
        return body
    if isinstance(body.get("messages"), list):
        return {**body, "messages": [made_right(each) for each in body["messages"]]}
    bare = {name: value for name, value in body.items() if name in {"id", "event_type", "lane", "topic"}}
    return {**body, **RIGHT.get(str(body.get("event_type")), {}), **bare}


def test_every_operation_of_the_description_is_tried(schema: Any) -> None:
    assert {each.ok().label for each in schema.get_all_operations()} == EXAMPLES.keys()


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("label", EXAMPLES)
def test_every_answer_is_as_it_is_described(
    schema: Any, label: str, mode: schemathesis.GenerationMode
) -> None:
    @settings(
        max_examples=EXAMPLES[label],
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=operation(schema, label).as_strategy(generation_mode=mode),
        right=st.booleans(),
        there=st.sampled_from(THERE),
    )
    def ask(case: Any, right: bool, there: str) -> None:
        if right:
            case.body = made_right(case.body)
            case.path_parameters = {name: quote(there, safe="") for name in case.path_parameters or ()}
            case.query = {**(case.query or {}), **({"id": there} if "id" in (case.query or {}) else {})}
        case.call_and_validate(checks=CHECKS)

    ask()
