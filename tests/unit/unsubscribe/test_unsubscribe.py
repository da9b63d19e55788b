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
    multipart,
    posted_form,
    secrets_with_key,
    token,
    tokens,
    unsubscribe_request,
)
from tests.support.unit.webhooks import DENIED, DOWN, THROTTLED, Secrets

Counted = Callable[[], dict[str, float]]
UNREACHABLE = EndpointConnectionError(endpoint_url="https://dynamodb.eu-central-1.amazonaws.com")


@pytest.fixture
def unsubscribe_page(aws: Aws, clock: FakeClock) -> Door:
    return Door(aws, clock)


def test_a_get_shows_a_button_and_never_unsubscribes(unsubscribe_page: Door, counted: Counted) -> None:
    for _ in range(20):
        answer = unsubscribe_page.answer(unsubscribe_request(token()))
        assert answer["statusCode"] == 200
        assert ">Unsubscribe</button>" in answer["body"]
    assert (unsubscribe_page.out(), unsubscribe_page.writes(), counted()) == (None, 0, {})


def test_a_head_request_gets_the_response_of_a_get_without_its_body(unsubscribe_page: Door) -> None:
    got, headed = (
        unsubscribe_page.answer(unsubscribe_request(token())),
        unsubscribe_page.answer(unsubscribe_request(token(), "HEAD")),
    )
    assert headed == {**got, "body": ""}
    assert (unsubscribe_page.out(), unsubscribe_page.writes()) == (None, 0)


@pytest.mark.parametrize("query", [ONE_CLICK, f"{FIELD}={OUT}"])
def test_a_choice_in_the_query_of_the_url_has_no_effect(unsubscribe_page: Door, query: str) -> None:
    names = dict([query.split("=")])
    for method in ("GET", "HEAD"):
        event = unsubscribe_request(
            token(), method, rawQueryString=query, queryStringParameters=names, body=query
        )
        assert unsubscribe_page.status(event) == 200
    event = {**posted_form(token(), ""), "rawQueryString": query, "queryStringParameters": names}
    assert unsubscribe_page.status(event) == 400
    assert (unsubscribe_page.out(), unsubscribe_page.writes()) == (None, 0)


def one_clicks() -> list[dict[str, Any]]:
    """Bodies that mail providers post: either encoding, in base64 or not."""
    body, kind = multipart(("List-Unsubscribe", "One-Click"))
    quoted = kind.replace("boundary=", 'charset=utf-8; Boundary="') + '"'
    return [
        posted_form(token(), ONE_CLICK),
        posted_form(token(), ONE_CLICK, encoded=True),
        posted_form(token(), ONE_CLICK, f"{FORM}; charset=UTF-8"),
        posted_form(token(), ONE_CLICK, FORM.upper()),
        posted_form(token(), f"{ONE_CLICK}\r\n"),
        posted_form(token(), body, kind),
        posted_form(token(), body, kind, encoded=True),
        posted_form(token(), body, quoted, encoded=True),
        posted_form(token(), body.replace('name="List-Unsubscribe"', "name=List-Unsubscribe"), kind),
        posted_form(token(), f"a preamble\r\n{body}an epilogue\r\n", kind),
        posted_form(token(), f"{ONE_CLICK}&mailbox=7"),
    ]


@pytest.mark.parametrize("at", range(11))
def test_a_one_click_request_opts_out_at_once(unsubscribe_page: Door, counted: Counted, at: int) -> None:
    answer = unsubscribe_page.answer(one_clicks()[at])
    assert (answer["statusCode"], unsubscribe_page.out()) == (200, "one-click")
    assert "You are unsubscribed" in answer["body"]
    assert counted() == {"Unsubscribed": 1}


@pytest.mark.parametrize(
    "kind", [FORM, "text/plain;charset=UTF-8", "application/octet-stream", "multipart/form-data", "%", ""]
)
@pytest.mark.parametrize(
    "body", [ONE_CLICK, f"{ONE_CLICK}\r\n", multipart(("List-Unsubscribe", "One-Click"))[0]]
)
@pytest.mark.parametrize("encoded", [False, True])
def test_a_one_click_request_with_any_content_type_opts_out(
    unsubscribe_page: Door, body: str, kind: str, encoded: bool
) -> None:
    assert unsubscribe_page.status(posted_form(token(), body, kind, encoded=encoded)) == 200
    assert unsubscribe_page.out() == "one-click"


def test_a_one_click_request_without_a_content_type_opts_out(unsubscribe_page: Door) -> None:
    assert unsubscribe_page.status(unsubscribe_request(token(), "POST", body=ONE_CLICK)) == 200
    assert unsubscribe_page.out() == "one-click"


def test_the_value_of_list_unsubscribe_post_in_mails_is_accepted_as_a_one_click_request(
    unsubscribe_page: Door,
) -> None:
    assert HEADER == ONE_CLICK
    assert unsubscribe_page.status(posted_form(token(), HEADER)) == 200
    assert unsubscribe_page.out() == "one-click"


def test_the_button_of_the_page_opts_out_and_the_button_of_the_next_page_opts_in_again(
    unsubscribe_page: Door, counted: Counted
) -> None:
    answer = unsubscribe_page.answer(posted_form(token(), {FIELD: OUT}))
    assert (answer["statusCode"], unsubscribe_page.out()) == (200, "page")
    assert f'name="{FIELD}" value="{IN}"' in answer["body"]
    answer = unsubscribe_page.answer(posted_form(token(), {FIELD: IN}))
    assert (answer["statusCode"], unsubscribe_page.out()) == (200, None)
    assert f'name="{FIELD}" value="{OUT}"' in answer["body"]
    assert counted() == {"Unsubscribed": 1, "Resubscribed": 1}


def test_a_page_that_is_opened_again_shows_the_current_choice(unsubscribe_page: Door) -> None:
    unsubscribe_page.answer(posted_form(token(), ONE_CLICK))
    again = unsubscribe_page.answer(unsubscribe_request(token()))["body"]
    assert "You are unsubscribed" in again
    assert f'name="{FIELD}" value="{IN}"' in again


def test_a_repeated_opt_out_gets_the_same_response_and_is_counted_once(
    unsubscribe_page: Door, clock: FakeClock, counted: Counted
) -> None:
    first = unsubscribe_page.answer(posted_form(token(), ONE_CLICK))
    clock.advance(60)
    assert unsubscribe_page.answer(posted_form(token(), ONE_CLICK)) == first
    assert unsubscribe_page.answer(posted_form(token(), {FIELD: OUT})) == first
    assert (unsubscribe_page.out(), counted()) == ("one-click", {"Unsubscribed": 1})


def test_an_opt_in_without_an_opt_out_changes_nothing(
    unsubscribe_page: Door, aws: Aws, counted: Counted
) -> None:
    assert unsubscribe_page.status(posted_form(token(), {FIELD: IN})) == 200
    assert (unsubscribe_page.out(), counted()) == (None, {})
    assert aws.dynamodb.scan(TableName=unsubscribe_page.preferences.table)["Items"] == []


def test_a_link_is_valid_only_for_its_own_topic_and_address(unsubscribe_page: Door) -> None:
    unsubscribe_page.answer(posted_form(token(topic="news"), ONE_CLICK))
    unsubscribe_page.answer(posted_form(token("eve@example.com"), ONE_CLICK))
    assert unsubscribe_page.out() is None
    assert unsubscribe_page.preferences.get(ADA, "news") is not None
    assert unsubscribe_page.preferences.get("eve@example.com", TOPIC) is not None


BODY, KIND = multipart(("List-Unsubscribe", "One-Click"))
WRONG = [
    (posted_form(token(), ""), 400),
    (unsubscribe_request(token(), "POST", headers={"content-type": FORM}), 400),
    (posted_form(token(), "List-Unsubscribe=one-click"), 400),
    (posted_form(token(), "List-Unsubscribe="), 400),
    (posted_form(token(), "list-unsubscribe=One-Click"), 400),
    (posted_form(token(), {FIELD: "yes"}), 400),
    (posted_form(token(), {"unsubscribe": "1"}), 400),
    (posted_form(token(), f"{ONE_CLICK}&{ONE_CLICK}"), 400),
    (posted_form(token(), f"{FIELD}={OUT}&{FIELD}={IN}"), 400),
    (posted_form(token(), f"{ONE_CLICK}&a=%ff"), 400),
    (posted_form(token(), "&".join([ONE_CLICK, *(f"a{at}=1" for at in range(MAX_FIELDS))])), 400),
    (posted_form(token(), ONE_CLICK) | {"isBase64Encoded": True}, 400),
    (posted_form(token(), ONE_CLICK) | {"isBase64Encoded": True, "body": "/w=="}, 400),
    (posted_form(token(), BODY.replace("\r\n\r\n", "\r\n"), KIND), 400),
    (posted_form(token(), BODY.replace("; name=", "; filename="), KIND), 400),
    (posted_form(token(), BODY.replace("One-Click", "No"), KIND), 400),
    (posted_form(token(), *multipart((FIELD, OUT))), 400),
    (posted_form(token(), "", "text/plain"), 415),
    (posted_form(token(), "", ""), 415),
    (posted_form(token(), f"{FIELD}={OUT}", "text/plain"), 415),
    (posted_form(token(), f"{ONE_CLICK}&a=1", "text/plain"), 415),
    (posted_form(token(), '{"List-Unsubscribe": "One-Click"}', "application/json"), 415),
    (unsubscribe_request(token(), "POST"), 415),
    (posted_form(token(), ONE_CLICK + "&a=" + "b" * MAX_BODY_BYTES), 413),
    (posted_form(token(), ONE_CLICK + "&a=" + "b" * MAX_BODY_BYTES, encoded=True), 413),
    (unsubscribe_request(token(), "DELETE"), 405),
    (unsubscribe_request(token(), "PUT", headers={"content-type": FORM}, body=ONE_CLICK), 405),
    (unsubscribe_request(token(), "OPTIONS"), 405),
    ({}, 405),
    ({"requestContext": "x"}, 400),
]


@pytest.mark.parametrize(("event", "status"), WRONG)
def test_an_invalid_request_is_refused_with_a_page_and_changes_no_choice(
    unsubscribe_page: Door, counted: Counted, event: dict[str, Any], status: int
) -> None:
    answer = unsubscribe_page.answer(event)
    assert (answer["statusCode"], unsubscribe_page.out(), unsubscribe_page.writes()) == (status, None, 0)
    assert "<h1>That did not work</h1>" in answer["body"]
    assert counted() == {"UnsubscribeRefused": 1}


@pytest.mark.parametrize("encoded", [False, True])
def test_the_largest_valid_form_is_accepted(unsubscribe_page: Door, encoded: bool) -> None:
    fill = "&a="
    body = f"{ONE_CLICK}{fill}{'b' * (MAX_BODY_BYTES - len(ONE_CLICK + fill))}"
    assert len(body) == MAX_BODY_BYTES
    assert unsubscribe_page.status(posted_form(token(), body, encoded=encoded)) == 200


def test_an_unknown_method_is_refused_with_the_allowed_methods(unsubscribe_page: Door) -> None:
    assert (
        unsubscribe_page.answer(unsubscribe_request(token(), "PUT"))["headers"]["Allow"] == "GET, HEAD, POST"
    )


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize(
    "wrong",
    ["", "x", token()[:-2], token() + "A", tokens(NEWER).sign(tokens().read(token())), "a" * 5000],
)
def test_each_request_with_an_invalid_token_gets_the_same_page_with_status_404(
    unsubscribe_page: Door, counted: Counted, method: str, wrong: str
) -> None:
    event = posted_form(wrong, ONE_CLICK) if method == "POST" else unsubscribe_request(wrong, method)
    answer = unsubscribe_page.answer(event)
    assert (answer["statusCode"], counted()) == (404, {"UnsubscribeRefused": 1})
    assert "This link does not work" in answer["body"]
    assert answer["body"] == unsubscribe_page.answer(unsubscribe_request("another"))["body"]
    client: Any = unsubscribe_page.preferences.client
    assert {"get_item", "update_item"}.isdisjoint(client.names())


@pytest.mark.parametrize("trouble", [UNREACHABLE, THROTTLED, client_error("AccessDeniedException")])
@pytest.mark.parametrize(
    "event",
    [unsubscribe_request(token()), posted_form(token(), ONE_CLICK), posted_form(token(), {FIELD: IN})],
)
def test_a_request_gets_503_during_an_outage_of_the_preference_table_and_succeeds_if_repeated(
    aws: Aws, clock: FakeClock, trouble: Exception, event: dict[str, Any]
) -> None:
    door = Door(aws, clock, get_item=failing(trouble), update_item=failing(trouble))
    answer = door.answer(event)
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "60")
    assert "Please try again" in answer["body"]
    assert door.status(event) == 200


@pytest.mark.parametrize("trouble", [DENIED, DOWN, NoCredentialsError()])
def test_an_unsubscribe_request_gets_500_while_the_signing_secret_cannot_be_read(
    aws: Aws, clock: FakeClock, log: Log, trouble: Exception
) -> None:
    secrets = secrets_with_key()
    secrets.trouble = trouble
    door = Door(aws, clock, secrets)
    assert door.status(posted_form(token(), ONE_CLICK)) == 500
    (line,) = log()
    assert line["level"] == "ERROR"
    assert "let the function read it" in line["reason"]
    secrets.trouble = None
    assert (door.status(posted_form(token(), ONE_CLICK)), door.out()) == (200, "one-click")


def test_an_unsubscribe_request_gets_500_if_the_signing_secret_has_no_key(aws: Aws, clock: FakeClock) -> None:
    assert Door(aws, clock, Secrets("{}")).status(unsubscribe_request(token())) == 500


def test_responses_neither_redirect_nor_set_a_cookie(unsubscribe_page: Door) -> None:
    events = [unsubscribe_request(token()), *one_clicks(), *(event for event, _ in WRONG)]
    for event in events:
        answer = unsubscribe_page.answer(event)
        assert not 300 <= answer["statusCode"] < 400
        assert {"Location", "Set-Cookie", "Refresh"}.isdisjoint(answer["headers"])
        assert answer.keys() == {"statusCode", "headers", "body"}


def test_the_log_of_unsubscribe_requests_contains_the_topic_and_result_but_no_recipient(
    unsubscribe_page: Door, log: Log
) -> None:
    for event in (
        unsubscribe_request(token()),
        posted_form(token(), ONE_CLICK),
        posted_form(token(), {FIELD: IN}),
        unsubscribe_request("x" * 50),
    ):
        unsubscribe_page.answer(event)
    lines = log()
    assert [line["message"] for line in lines] == ["opted out", "opted in again", "request refused"]
    assert (lines[0]["topic"], lines[0]["by"]) == (TOPIC, "one-click")
    text = str(lines)
    assert not any(each in text for each in (ADA, "ada", token(), "x" * 50))


def test_every_response_is_in_the_readers_language(aws: Aws, clock: FakeClock) -> None:
    german = Door(aws, clock, page=PageSettings(languages={"de": {}}))
    events = (
        unsubscribe_request(token()),
        posted_form(token(), ONE_CLICK),
        unsubscribe_request("x" * 50),
        unsubscribe_request(token(), "PUT"),
    )
    for event in events:
        event["headers"] = {**event["headers"], "Accept-Language": "de-CH,de;q=0.9"}
        assert '<html lang="de"' in german.answer(event)["body"]
    assert '<html lang="en"' in german.answer({"headers": 5})["body"]
