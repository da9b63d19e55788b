"""Errors: each a problem that says what to do, and none that says what it should not."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from mailroom.api.messages import Intake
from mailroom.ledger.status_reader import LedgerReader
from tests.support.unit.api_requests import Api
from tests.support.unit.shared import before_each_call, item

THROTTLED = ClientError(
    {"Error": {"Code": "ThrottlingException", "Message": "slow down, vincent@example.com"}}, "PutItem"
)
OUT_OF_REACH = EndpointConnectionError(endpoint_url="https://dynamodb.example")


def failing(monkeypatch: pytest.MonkeyPatch, operation: str, error: Exception, from_call: int = 0) -> None:
    """From that call on the operation fails."""
    calls = iter(range(1_000_000))

    def fail(name: str) -> None:
        if name == operation and next(calls) >= from_call:
            raise error

    before_each_call(monkeypatch, fail)


@pytest.mark.parametrize("error", [THROTTLED, OUT_OF_REACH])
def test_the_response_to_a_message_that_cannot_be_put_into_the_mailbox_has_a_retry_after_header(
    api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with monkeypatch.context() as patch:
        failing(patch, "PutItem", error)
        answer = api.post(item())
    assert (answer.status, answer.headers["retry-after"]) == (503, "2")
    assert "vincent" not in answer.text
    assert api.post(item()).status == 202


def test_a_partly_failed_list_may_be_posted_again_and_its_response_names_the_failed_messages(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = {"messages": [item(id=each) for each in "abc"]}
    with monkeypatch.context() as patch:
        failing(patch, "PutItem", THROTTLED, from_call=2)
        answer = api.post(messages)
    assert answer.status == 503
    assert sorted(each["result"] for each in answer.json["messages"]) == ["accepted", "accepted", "failed"]
    assert len(answer.fields) == 1
    again = api.post(messages)
    assert (again.status, again.json["accepted"], again.json["existed"]) == (202, 1, 2)


def test_a_message_whose_content_could_not_be_stored_gets_a_response_with_status_503(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "PutObject", THROTTLED)
    assert api.post(item(text="x" * 500_000)).status == 503


@pytest.mark.parametrize("url", ["/messages/m-1", "/messages/m-1?event_type=mail", "/messages?id=m-1"])
def test_the_response_has_a_retry_after_header_if_the_state_of_a_message_cannot_be_read(
    api: Api, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    for operation in ("GetItem", "Query"):
        failing(monkeypatch, operation, THROTTLED)
    answer = api.get(url)
    assert (answer.status, answer.headers["retry-after"]) == (503, "2")


def test_an_internal_error_is_logged_and_not_part_of_the_response(
    api: Api, monkeypatch: pytest.MonkeyPatch, log: Callable[[], list[dict[str, Any]]]
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("internal detail")

    monkeypatch.setattr(Intake, "take", broken)
    monkeypatch.setattr(LedgerReader, "find", broken)
    for answer in (api.post(item()), api.get("/messages/m-1"), api.cancel("/messages/m-1/cancel")):
        assert answer.status == 500
        assert answer.headers["content-type"] == "application/problem+json"
        assert "internal detail" not in answer.text
        assert "Traceback" not in answer.text
    assert sum("internal detail" in line["exception"] for line in log()) == 3


@pytest.mark.parametrize(
    ("method", "url"),
    [("GET", "/"), ("GET", "/nothing"), ("DELETE", "/messages/m-1"), ("POST", "/messages/x")],
)
def test_a_request_to_an_unknown_path_gets_404_as_problem_json(api: Api, method: str, url: str) -> None:
    from tests.support.unit.api_requests import api_event

    answer = api.ask(api_event(method, url))
    assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")


def test_every_error_response_is_problem_json_with_status_type_title_and_detail(api: Api) -> None:
    api.post(item())
    answers = [
        api.post("no"),
        api.post(item(to="x")),
        api.post(item(text="No")),
        api.post({"messages": []}),
        api.post(item(), **{"Content-Type": "text/plain"}),
        api.get("/messages/none"),
        api.get("/messages?cursor=7"),
        api.get("/nowhere"),
        api.cancel("/messages/m-1/cancel"),
    ]
    for answer in answers:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json["status"] == answer.status
        assert answer.json["type"] == "about:blank"
        assert answer.json["title"]
        assert answer.json["detail"]


def test_every_response_422_names_a_field_and_its_problem(api: Api) -> None:
    bad: list[Any] = [item(to="x"), {}, {"messages": []}, {"messages": [item(id=...)]}, item(id=5)]
    answers = [*(api.post(each) for each in bad), api.get("/messages?cursor=7")]
    for answer in answers:
        assert answer.status == 422
        assert answer.json["errors"]
        for error in answer.json["errors"]:
            assert error["field"]
            assert len(error["problem"].split()) > 2, error
