"""The page behind a link for opting out: what changes a choice, and what never does."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError

from mailroom.recipients.unsubscribe_links import ONE_CLICK as HEADER
from mailroom.unsubscribe.application import MAX_BODY_BYTES, MAX_FIELDS
from mailroom.unsubscribe.page import FIELD, IN, OUT, PageSettings
from tests.support.unit.fakes import client_error, failing
from tests.support.unit.post import Log
from tests.support.unit.shared import Aws, FakeClock
from tests.support.unit.unsubscribing import (
    ADA,
    FORM,
    NEWER,
    ONE_CLICK,
    TOPIC,
    Door,
    keys,
    multipart,
    post,
    request,
    token,
    tokens,
)
from tests.support.unit.webhooks import DENIED, DOWN, THROTTLED, Secrets

Counted = Callable[[], dict[str, float]]
UNREACHABLE = EndpointConnectionError(endpoint_url="https://dynamodb.eu-central-1.amazonaws.com")


@pytest.fixture
def door(aws: Aws, clock: FakeClock) -> Door:
    return Door(aws, clock)


def writes(door: Door) -> int:
    client: Any = door.preferences.client
    return int(client.names().count("update_item"))


def test_a_get_shows_a_button_and_never_unsubscribes(door: Door, counted: Counted) -> None:
    for _ in range(20):
        answer = door.answer(request(token()))
        assert answer["statusCode"] == 200
        assert ">Unsubscribe</button>" in answer["body"]
    assert (door.out(), writes(door), counted()) == (None, 0, {})


def test_a_head_request_gets_the_response_of_a_get_without_its_body(door: Door) -> None:
    got, headed = door.answer(request(token())), door.answer(request(token(), "HEAD"))
    assert headed == {**got, "body": ""}
    assert (door.out(), writes(door)) == (None, 0)


@pytest.mark.parametrize("query", [ONE_CLICK, f"{FIELD}={OUT}"])
def test_a_choice_in_the_query_of_the_url_has_no_effect(door: Door, query: str) -> None:
    names = dict([query.split("=")])
    for method in ("GET", "HEAD"):
        event = request(token(), method, rawQueryString=query, queryStringParameters=names, body=query)
        assert door.status(event) == 200
    event = {**post(token(), ""), "rawQueryString": query, "queryStringParameters": names}
    assert door.status(event) == 400
    assert (door.out(), writes(door)) == (None, 0)


def one_clicks() -> list[dict[str, Any]]:
    """What mail providers post: either encoding, in base64 or not."""
    body, kind = multipart(("List-Unsubscribe", "One-Click"))
    quoted = kind.replace("boundary=", 'charset=utf-8; Boundary="') + '"'
    return [
        post(token(), ONE_CLICK),
        post(token(), ONE_CLICK, encoded=True),
        post(token(), ONE_CLICK, f"{FORM}; charset=UTF-8"),
        post(token(), ONE_CLICK, FORM.upper()),
        post(token(), f"{ONE_CLICK}\r\n"),
        post(token(), body, kind),
        post(token(), body, kind, encoded=True),
        post(token(), body, quoted, encoded=True),
        post(token(), body.replace('name="List-Unsubscribe"', "name=List-Unsubscribe"), kind),
        post(token(), f"a preamble\r\n{body}an epilogue\r\n", kind),
        post(token(), f"{ONE_CLICK}&mailbox=7"),
    ]


@pytest.mark.parametrize("at", range(11))
def test_a_one_click_request_opts_out_at_once(door: Door, counted: Counted, at: int) -> None:
    answer = door.answer(one_clicks()[at])
    assert (answer["statusCode"], door.out()) == (200, "one-click")
    assert "You are unsubscribed" in answer["body"]
    assert counted() == {"Unsubscribed": 1}


@pytest.mark.parametrize(
    "kind", [FORM, "text/plain;charset=UTF-8", "application/octet-stream", "multipart/form-data", "%", ""]
)
@pytest.mark.parametrize(
    "body", [ONE_CLICK, f"{ONE_CLICK}\r\n", multipart(("List-Unsubscribe", "One-Click"))[0]]
)
@pytest.mark.parametrize("encoded", [False, True])
def test_a_one_click_request_counts_whatever_its_content_type_says(
    door: Door, body: str, kind: str, encoded: bool
) -> None:
    assert door.status(post(token(), body, kind, encoded=encoded)) == 200
    assert door.out() == "one-click"


def test_a_one_click_request_without_a_content_type_opts_out(door: Door) -> None:
    assert door.status(request(token(), "POST", body=ONE_CLICK)) == 200
    assert door.out() == "one-click"


def test_the_value_of_the_header_in_mails_is_the_body_of_a_one_click_request(door: Door) -> None:
    assert HEADER == ONE_CLICK
    assert door.status(post(token(), HEADER)) == 200
    assert door.out() == "one-click"


def test_the_button_of_the_page_opts_out_and_the_button_of_the_next_page_opts_in_again(
    door: Door, counted: Counted
) -> None:
    answer = door.answer(post(token(), {FIELD: OUT}))
    assert (answer["statusCode"], door.out()) == (200, "page")
    assert f'name="{FIELD}" value="{IN}"' in answer["body"]
    answer = door.answer(post(token(), {FIELD: IN}))
    assert (answer["statusCode"], door.out()) == (200, None)
    assert f'name="{FIELD}" value="{OUT}"' in answer["body"]
    assert counted() == {"Unsubscribed": 1, "Resubscribed": 1}


def test_a_page_that_is_opened_again_shows_the_current_choice(door: Door) -> None:
    door.answer(post(token(), ONE_CLICK))
    again = door.answer(request(token()))["body"]
    assert "You are unsubscribed" in again
    assert f'name="{FIELD}" value="{IN}"' in again


def test_a_repeated_opt_out_gets_the_same_response_and_is_counted_once(
    door: Door, clock: FakeClock, counted: Counted
) -> None:
    first = door.answer(post(token(), ONE_CLICK))
    clock.advance(60)
    assert door.answer(post(token(), ONE_CLICK)) == first
    assert door.answer(post(token(), {FIELD: OUT})) == first
    assert (door.out(), counted()) == ("one-click", {"Unsubscribed": 1})


def test_an_opt_in_without_an_opt_out_changes_nothing(door: Door, aws: Aws, counted: Counted) -> None:
    assert door.status(post(token(), {FIELD: IN})) == 200
    assert (door.out(), counted()) == (None, {})


def test_a_link_is_valid_only_for_its_own_topic_and_address(door: Door) -> None:
    door.answer(post(token(topic="news"), ONE_CLICK))
    door.answer(post(token("eve@example.com"), ONE_CLICK))
    assert door.out() is None
    assert door.preferences.get(ADA, "news") is not None
    assert door.preferences.get("eve@example.com", TOPIC) is not None


BODY, KIND = multipart(("List-Unsubscribe", "One-Click"))
WRONG = [
    (post(token(), ""), 400),
    (request(token(), "POST", headers={"content-type": FORM}), 400),
    (post(token(), "List-Unsubscribe=one-click"), 400),
    (post(token(), "List-Unsubscribe="), 400),
    (post(token(), "list-unsubscribe=One-Click"), 400),
    (post(token(), {FIELD: "yes"}), 400),
    (post(token(), {"unsubscribe": "1"}), 400),
    (post(token(), f"{ONE_CLICK}&{ONE_CLICK}"), 400),
    (post(token(), f"{FIELD}={OUT}&{FIELD}={IN}"), 400),
    (post(token(), f"{ONE_CLICK}&a=%ff"), 400),
    (post(token(), "&".join([ONE_CLICK, *(f"a{at}=1" for at in range(MAX_FIELDS))])), 400),
    (post(token(), ONE_CLICK) | {"isBase64Encoded": True}, 400),
    (post(token(), ONE_CLICK) | {"isBase64Encoded": True, "body": "/w=="}, 400),
    (post(token(), BODY.replace("\r\n\r\n", "\r\n"), KIND), 400),
    (post(token(), BODY.replace("; name=", "; filename="), KIND), 400),
    (post(token(), BODY.replace("One-Click", "No"), KIND), 400),
    (post(token(), *multipart((FIELD, OUT))), 400),
    (post(token(), "", "text/plain"), 415),
    (post(token(), "", ""), 415),
    (post(token(), f"{FIELD}={OUT}", "text/plain"), 415),
    (post(token(), f"{ONE_CLICK}&a=1", "text/plain"), 415),
    (post(token(), '{"List-Unsubscribe": "One-Click"}', "application/json"), 415),
    (request(token(), "POST"), 415),
    (post(token(), ONE_CLICK + "&a=" + "b" * MAX_BODY_BYTES), 413),
    (post(token(), ONE_CLICK + "&a=" + "b" * MAX_BODY_BYTES, encoded=True), 413),
    (request(token(), "DELETE"), 405),
    (request(token(), "PUT", headers={"content-type": FORM}, body=ONE_CLICK), 405),
    (request(token(), "OPTIONS"), 405),
    ({}, 405),
    ({"requestContext": "x"}, 400),
]


@pytest.mark.parametrize(("event", "status"), WRONG)
def test_an_invalid_request_is_refused_with_a_page_and_changes_no_choice(
    door: Door, counted: Counted, event: dict[str, Any], status: int
) -> None:
    answer = door.answer(event)
    assert (answer["statusCode"], door.out(), writes(door)) == (status, None, 0)
    assert "<h1>That did not work</h1>" in answer["body"]
    assert counted() == {"UnsubscribeRefused": 1}


@pytest.mark.parametrize("encoded", [False, True])
def test_the_largest_valid_form_is_accepted(door: Door, encoded: bool) -> None:
    fill = "&a="
    body = f"{ONE_CLICK}{fill}{'b' * (MAX_BODY_BYTES - len(ONE_CLICK + fill))}"
    assert len(body) == MAX_BODY_BYTES
    assert door.status(post(token(), body, encoded=encoded)) == 200


def test_an_unknown_method_is_refused_with_the_allowed_methods(door: Door) -> None:
    assert door.answer(request(token(), "PUT"))["headers"]["Allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize(
    "wrong",
    ["", "x", token()[:-2], token() + "A", tokens(NEWER).sign(tokens().read(token())), "a" * 5000],
)
def test_each_request_with_an_invalid_token_gets_the_same_page_with_status_404(
    door: Door, counted: Counted, method: str, wrong: str
) -> None:
    event = post(wrong, ONE_CLICK) if method == "POST" else request(wrong, method)
    answer = door.answer(event)
    assert (answer["statusCode"], counted()) == (404, {"UnsubscribeRefused": 1})
    assert "This link does not work" in answer["body"]
    assert answer["body"] == door.answer(request("another"))["body"]
    client: Any = door.preferences.client
    assert {"get_item", "update_item"}.isdisjoint(client.names())


@pytest.mark.parametrize("trouble", [UNREACHABLE, THROTTLED, client_error("AccessDeniedException")])
@pytest.mark.parametrize("event", [request(token()), post(token(), ONE_CLICK), post(token(), {FIELD: IN})])
def test_a_request_gets_503_during_an_outage_of_the_table_and_succeeds_if_it_is_repeated(
    aws: Aws, clock: FakeClock, trouble: Exception, event: dict[str, Any]
) -> None:
    door = Door(aws, clock, get_item=failing(trouble), update_item=failing(trouble))
    answer = door.answer(event)
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "60")
    assert "Please try again" in answer["body"]
    assert door.status(event) == 200


@pytest.mark.parametrize("trouble", [DENIED, DOWN, NoCredentialsError()])
def test_a_secret_that_cannot_be_read_is_an_internal_error(
    aws: Aws, clock: FakeClock, log: Log, trouble: Exception
) -> None:
    secrets = keys()
    secrets.trouble = trouble
    door = Door(aws, clock, secrets)
    assert door.status(post(token(), ONE_CLICK)) == 500
    (line,) = log()
    assert line["level"] == "ERROR"
    assert "let the function read it" in line["reason"]
    secrets.trouble = None
    assert (door.status(post(token(), ONE_CLICK)), door.out()) == (200, "one-click")


def test_a_secret_without_a_key_is_an_internal_error(aws: Aws, clock: FakeClock) -> None:
    assert Door(aws, clock, Secrets("{}")).status(request(token())) == 500


def test_responses_neither_redirect_nor_set_a_cookie(door: Door) -> None:
    events = [request(token()), *one_clicks(), *(event for event, _ in WRONG)]
    for event in events:
        answer = door.answer(event)
        assert not 300 <= answer["statusCode"] < 400
        assert {"Location", "Set-Cookie", "Refresh"}.isdisjoint(answer["headers"])
        assert answer.keys() == {"statusCode", "headers", "body"}


def test_the_log_contains_the_topic_and_the_result_and_no_recipient(door: Door, log: Log) -> None:
    for event in (request(token()), post(token(), ONE_CLICK), post(token(), {FIELD: IN}), request("x" * 50)):
        door.answer(event)
    lines = log()
    assert [line["message"] for line in lines] == ["opted out", "opted in again", "request refused"]
    assert (lines[0]["topic"], lines[0]["by"]) == (TOPIC, "one-click")
    text = str(lines)
    assert not any(each in text for each in (ADA, "ada", token(), "x" * 50))


def test_every_response_is_in_the_readers_language(aws: Aws, clock: FakeClock) -> None:
    german = Door(aws, clock, page=PageSettings(languages={"de": {}}))
    events = (request(token()), post(token(), ONE_CLICK), request("x" * 50), request(token(), "PUT"))
    for event in events:
        event["headers"] = {**event["headers"], "Accept-Language": "de-CH,de;q=0.9"}
        assert '<html lang="de"' in german.answer(event)["body"]
    assert '<html lang="en"' in german.answer({"headers": 5})["body"]
