"""Requests to the function for Twilio's callbacks that it refuses before it checks their signatures."""

from typing import Any
from urllib.parse import urlencode

import pytest

from tests.support.unit.feedback_callbacks import (
    FIELDS,
    PATH,
    CallbacksDoor,
    callback_request,
    signed_headers,
)
from tests.support.unit.shared import FakeClock


@pytest.fixture
def twilio_requests(clock: FakeClock) -> CallbacksDoor:
    return CallbacksDoor(clock)


def test_a_request_body_over_the_size_limit_is_refused_before_decoding(
    twilio_requests: CallbacksDoor,
) -> None:
    largest = {**FIELDS, "Body": ""}
    largest["Body"] = "x" * (65_536 - len(urlencode(largest)))
    assert twilio_requests.answers(callback_request(largest)) == 204
    largest["Body"] += "xxx"
    assert twilio_requests.answers(callback_request(largest)) == 413
    assert (
        twilio_requests.answers(
            callback_request(body="", isBase64Encoded=False) | {"body": urlencode(largest)}
        )
        == 413
    )
    assert twilio_requests.answers(callback_request() | {"body": "!" * 90_000}) == 413


@pytest.mark.parametrize("kind", [None, "", "application/json", "multipart/form-data; boundary=x"])
def test_a_request_whose_media_type_is_not_a_form_is_refused(
    twilio_requests: CallbacksDoor, kind: str | None
) -> None:
    assert twilio_requests.answers(callback_request(headers=signed_headers(content_type=kind))) == 415
    assert twilio_requests.queue.bodies == []


@pytest.mark.parametrize(
    "kind", ["Application/X-WWW-Form-Urlencoded", "application/x-www-form-urlencoded ;a=1"]
)
def test_the_media_type_of_a_request_may_have_parameters_and_capital_letters(
    twilio_requests: CallbacksDoor, kind: str
) -> None:
    assert twilio_requests.answers(callback_request(headers=signed_headers(content_type=kind))) == 204


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/callbacks/twilio", "/callbacks/twilio/", "/callbacks/twilio/!", "/callbacks/twilio/é"),
        *(PATH + "/", PATH + "\n", PATH + "/x", f"/x{PATH}", PATH + ".1", PATH + "A", PATH + "="),
        *("/callbacks/twilio/" + "x" * 300, PATH.replace("twilio", "telnyx"), PATH.upper()),
    ],
)
def test_a_request_whose_path_does_not_name_a_message_is_refused(
    twilio_requests: CallbacksDoor, path: str
) -> None:
    assert twilio_requests.answers(callback_request(path=path)) == 404


@pytest.mark.parametrize("body", ["!", "é", "====", "gA=="])
def test_a_request_body_that_is_not_base64_of_utf_8_is_refused(
    twilio_requests: CallbacksDoor, body: str
) -> None:
    assert twilio_requests.answers(callback_request() | {"body": body}) == 400


@pytest.mark.parametrize("query", ["\ud800", "ä", "a b", "\n"])
def test_a_request_with_invalid_characters_in_the_query_is_refused(
    twilio_requests: CallbacksDoor, query: str
) -> None:
    assert twilio_requests.answers(callback_request() | {"rawQueryString": query}) == 400


def test_a_request_with_a_malformed_form_is_refused(twilio_requests: CallbacksDoor) -> None:
    assert twilio_requests.answers(callback_request(body="a=%ff")) == 400
    assert (
        twilio_requests.answers(callback_request(body="&".join(f"a{number}=1" for number in range(101))))
        == 400
    )
    assert twilio_requests.answers(callback_request(isBase64Encoded=False) | {"body": "a=\ud800"}) == 400


def test_a_request_with_a_repeated_form_field_is_refused(twilio_requests: CallbacksDoor) -> None:
    doubled = urlencode([*FIELDS.items(), ("MessageStatus", "failed")])
    assert twilio_requests.answers(callback_request(body=doubled)) == 400
    assert twilio_requests.queue.bodies == []


@pytest.mark.parametrize(
    "changes", [{"rawPath": None}, {"headers": None}, {"headers": {"a": 1}}, {"body": 7}]
)
def test_a_lambda_event_that_is_not_an_http_request_is_refused(
    twilio_requests: CallbacksDoor, changes: dict[str, Any]
) -> None:
    assert twilio_requests.answers({**callback_request(), **changes}) == 400
    assert twilio_requests.answers({}) == 400


@pytest.mark.parametrize("body", [None, ""])
def test_a_callback_request_without_a_body_is_refused(
    twilio_requests: CallbacksDoor, body: str | None
) -> None:
    assert twilio_requests.answers(callback_request({}) | {"body": body}) == 403
