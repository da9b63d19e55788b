"""Twilio's status callbacks: a request with a valid signature is queued, any other gets a status alone."""

import base64
import json
from typing import Any
from urllib.parse import parse_qsl, urldefrag, urlencode

import pytest
from botocore.exceptions import EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st
from twilio.request_validator import RequestValidator

from mailroom.aws.secret import CachedSecret
from mailroom.message.message import Key, Reference
from mailroom.providers.twilio.sender import RETRIED
from tests.support.unit.feedback_callbacks import (
    ACCOUNT,
    FIELDS,
    PATH,
    PUBLIC_URL,
    SECRET,
    TOKEN,
    CallbacksDoor,
    callback_request,
    sign,
    signed_headers,
)
from tests.support.unit.feedback_words import NUMBER, SID, one_event
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import NOW, NOW_MS, FakeClock
from tests.support.unit.webhooks import DENIED, DOWN


@pytest.fixture
def twilio_callbacks(clock: FakeClock) -> CallbacksDoor:
    return CallbacksDoor(clock)


def without(name: str) -> dict[str, str]:
    return {field: value for field, value in FIELDS.items() if field != name}


def test_a_signed_callback_is_queued_without_the_content_of_the_text(
    twilio_callbacks: CallbacksDoor, counted: Counted
) -> None:
    assert twilio_callbacks.answers(callback_request({**FIELDS, "Body": "secret"})) == 204
    (body,) = twilio_callbacks.queue.bodies
    assert json.loads(body) == {
        "source": "twilio",
        "reference": Reference("s-1").text,
        "received_at": NOW_MS,
        "fields": {
            "MessageSid": SID,
            "MessageStatus": "delivered",
            "To": NUMBER,
            "From": FIELDS["From"],
            "RawDlrDoneDate": "2611210859",
        },
    }
    assert counted() == {"TwilioCallbacks": 1}


def test_the_feedback_reader_reads_a_queued_twilio_callback(twilio_callbacks: CallbacksDoor) -> None:
    path = f"/callbacks/twilio/{Reference('order 7 / ä', 3).text}"
    fields = {**FIELDS, "MessageStatus": "undelivered", "ErrorCode": "30006"}
    assert twilio_callbacks.answers(callback_request(fields, path=path)) == 204
    event = one_event(twilio_callbacks.queue.bodies[0])
    assert (event.key, event.attempt) == (Key("order 7 / ä", "sms"), 3)
    assert (event.status, event.suppress, event.recipients) == ("undelivered", "bounce", (NUMBER,))


def test_twilios_signature_covers_the_callback_url_without_its_fragment(
    twilio_callbacks: CallbacksDoor,
) -> None:
    url = f"{PUBLIC_URL}{PATH}{RETRIED}"
    assert twilio_callbacks.answers(callback_request(signature=sign(urldefrag(url).url, FIELDS))) == 204
    assert twilio_callbacks.answers(callback_request(signature=sign(url, FIELDS))) == 403


def test_a_callback_body_may_arrive_without_base64(twilio_callbacks: CallbacksDoor) -> None:
    assert (
        twilio_callbacks.answers(
            callback_request(body=None, isBase64Encoded=False) | {"body": urlencode(FIELDS)}
        )
        == 204
    )


def test_twilios_signature_covers_an_empty_field(twilio_callbacks: CallbacksDoor) -> None:
    fields = {**FIELDS, "ErrorMessage": ""}
    assert twilio_callbacks.answers(callback_request(fields)) == 204
    assert (
        twilio_callbacks.answers(callback_request(fields, signature=sign(PUBLIC_URL + PATH, FIELDS))) == 403
    )


def test_twilios_signature_covers_the_query_of_the_url(twilio_callbacks: CallbacksDoor) -> None:
    assert twilio_callbacks.answers(callback_request(query="a=1&b=%20")) == 204
    assert (
        twilio_callbacks.answers(
            callback_request(signature=sign(PUBLIC_URL + PATH, FIELDS)) | {"rawQueryString": "a=1"}
        )
        == 403
    )


@pytest.mark.parametrize("origin", ["https://api.mailroom.example", "https://api.mailroom.example:443"])
def test_twilios_signature_may_be_over_the_url_with_or_without_a_port(clock: FakeClock, origin: str) -> None:
    for public_url in ("https://api.mailroom.example", "https://api.mailroom.example:443"):
        door = CallbacksDoor(clock, public_url=public_url)
        assert door.answers(callback_request(signature=sign(origin + PATH, FIELDS))) == 204


OWN = "a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com"


def came_by(host: Any, signature: str | None = None, **changes: Any) -> dict[str, Any]:
    """Return a callback that API Gateway received for this host, signed for the host unless `signature`
    replaces that."""
    event = callback_request(
        signature=sign(f"https://{host}{PATH}", FIELDS) if signature is None else signature
    )
    event["requestContext"]["domainName"] = host
    return {**event, **changes}


@pytest.mark.parametrize("origin", [f"https://{OWN}", f"https://{OWN}:443"])
def test_a_callback_to_the_apis_default_host_stays_valid_after_a_change_of_the_public_url(
    twilio_callbacks: CallbacksDoor, origin: str
) -> None:
    assert twilio_callbacks.answers(came_by(OWN, sign(origin + PATH, FIELDS))) == 204
    assert twilio_callbacks.answers(came_by(OWN, sign(PUBLIC_URL + PATH, FIELDS))) == 204  # as before


def test_a_callback_signed_for_another_host_is_refused_even_if_its_headers_name_that_host(
    twilio_callbacks: CallbacksDoor,
) -> None:
    captured = sign(f"https://other-stage.example{PATH}", FIELDS)
    assert twilio_callbacks.answers(came_by(OWN, captured)) == 403
    event = came_by(OWN, captured)
    event["headers"] |= {"host": "other-stage.example", "x-forwarded-host": "other-stage.example"}
    assert twilio_callbacks.answers(event) == 403
    assert twilio_callbacks.queue.bodies == []


@pytest.mark.parametrize("host", [OWN, "api.mailroom.example"])
def test_a_callback_signed_by_another_token_or_for_http_is_refused_at_any_host(
    twilio_callbacks: CallbacksDoor, host: str
) -> None:
    assert (
        twilio_callbacks.answers(came_by(host, sign(f"https://{host}{PATH}", FIELDS, "another token"))) == 403
    )
    assert twilio_callbacks.answers(came_by(host, sign(f"http://{host}{PATH}", FIELDS))) == 403


@pytest.mark.parametrize(
    "host",
    [
        *("", "localhost", "a.example/x", "a.example:8443", "ada@a.example", "a.example?x=", "a..example"),
        *("a.example\n", "ä.example", "x" * 64 + ".example", "x." * 127 + "example"),
    ],
)
def test_a_callback_signed_for_an_invalid_host_is_refused(twilio_callbacks: CallbacksDoor, host: str) -> None:
    assert twilio_callbacks.answers(came_by(host)) == 403
    assert twilio_callbacks.answers(came_by(host, sign(PUBLIC_URL + PATH, FIELDS))) == 204


def test_a_callback_without_a_host_is_checked_against_the_public_url_only(
    twilio_callbacks: CallbacksDoor,
) -> None:
    assert twilio_callbacks.answers(came_by(None, sign(PUBLIC_URL + PATH, FIELDS))) == 204
    assert twilio_callbacks.answers(came_by(None)) == 403
    bare = callback_request()
    del bare["requestContext"]
    assert twilio_callbacks.answers(bare) == 204


def test_twilios_signature_covers_the_port_and_the_path_of_the_public_url(clock: FakeClock) -> None:
    public_url = "http://127.0.0.1:4566/restapis/a1/$default/_user_request_"
    door = CallbacksDoor(clock, public_url=public_url)
    assert door.answers(callback_request(signature=sign(public_url + PATH, FIELDS))) == 204
    assert door.answers(callback_request(signature=sign("http://127.0.0.1:4566" + PATH, FIELDS))) == 403


@pytest.mark.parametrize(
    "signature",
    [
        None,
        "",
        "no",
        "é" * 28,
        "\ud800",
        sign(PUBLIC_URL + PATH, FIELDS, "another token"),
        sign(PUBLIC_URL + PATH, {**FIELDS, "MessageStatus": "failed"}),
        sign("https://elsewhere.example" + PATH, FIELDS),
        sign(PUBLIC_URL + PATH + "x", FIELDS),
        sign(PUBLIC_URL + PATH, FIELDS).swapcase(),
        sign(PUBLIC_URL + PATH, FIELDS)[:-1],
        f"{sign(PUBLIC_URL + PATH, FIELDS)},{sign(PUBLIC_URL + PATH, FIELDS)}",
    ],
)
def test_a_callback_with_a_missing_or_invalid_signature_is_refused(
    twilio_callbacks: CallbacksDoor, counted: Counted, signature: str | None
) -> None:
    assert (
        twilio_callbacks.answers(callback_request(headers=signed_headers(x_twilio_signature=signature)))
        == 403
    )
    assert (twilio_callbacks.queue.bodies, counted()) == ([], {"TwilioCallbacksRefused": 1})


def test_the_headers_of_a_callback_are_read_in_upper_and_lower_case(twilio_callbacks: CallbacksDoor) -> None:
    event = callback_request()
    event["headers"] = {name.title(): value for name, value in event["headers"].items()}
    assert twilio_callbacks.answers(event) == 204


def test_a_captured_callback_is_refused_for_another_message_or_attempt(
    twilio_callbacks: CallbacksDoor,
) -> None:
    for reference in (Reference("s-2"), Reference("s-1", 2)):
        path = f"/callbacks/twilio/{reference.text}"
        assert twilio_callbacks.answers({**callback_request(), "rawPath": path}) == 403
    assert twilio_callbacks.queue.bodies == []


def test_a_repeated_callback_is_queued_as_the_same_event(twilio_callbacks: CallbacksDoor) -> None:
    for _ in range(2):
        assert twilio_callbacks.answers(callback_request()) == 204
    first, second = map(one_event, twilio_callbacks.queue.bodies)
    assert first == second


@pytest.mark.parametrize("fields", [without("AccountSid"), {**FIELDS, "AccountSid": ACCOUNT[:-1] + "1"}])
def test_a_callback_of_another_twilio_account_is_refused(
    twilio_callbacks: CallbacksDoor, fields: dict[str, str]
) -> None:
    assert twilio_callbacks.answers(callback_request(fields)) == 403
    assert twilio_callbacks.queue.bodies == []


@pytest.mark.parametrize("name", ["MessageSid", "MessageStatus"])
def test_a_signed_callback_without_a_message_id_or_a_status_is_refused(
    twilio_callbacks: CallbacksDoor, name: str
) -> None:
    assert twilio_callbacks.answers(callback_request(without(name))) == 400
    assert twilio_callbacks.answers(callback_request({**FIELDS, name: ""})) == 400
    assert twilio_callbacks.queue.bodies == []


@pytest.mark.parametrize("trouble", [DOWN, EndpointConnectionError(endpoint_url="https://sqs")])
def test_if_a_callback_cannot_be_queued_the_response_makes_twilio_retry(
    twilio_callbacks: CallbacksDoor, log: Log, counted: Counted, trouble: Exception
) -> None:
    twilio_callbacks.queue.trouble = trouble
    assert twilio_callbacks.answers(callback_request()) == 503
    assert counted() == {"TwilioCallbacksFailed": 1}
    (line,) = log()
    assert (line["level"], line["message"]) == ("ERROR", "request not accepted")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "token",
        "[]",
        "{}",
        f'{{"account_sid": "{ACCOUNT}"}}',
        f'{{"account_sid": "{ACCOUNT}", "auth_token": ""}}',
        f'{{"account_sid": "", "auth_token": "{TOKEN}"}}',
        f'{{"account_sid": "{ACCOUNT}", "auth_token": null}}',
    ],
)
def test_every_callback_gets_a_server_error_and_the_log_has_the_remedy_while_the_secret_is_invalid(
    clock: FakeClock, log: Log, text: str
) -> None:
    door = CallbacksDoor(clock, text)
    assert door.answers(callback_request(signature=sign(PUBLIC_URL + PATH, FIELDS, ""))) == 500
    (line,) = log()
    assert line["level"] == "ERROR"
    assert 'not {"account_sid": "AC…", "auth_token": "…"}' in line["reason"]
    assert (TOKEN in json.dumps(line), door.queue.bodies) == (False, [])


@pytest.mark.parametrize("trouble", [DENIED, DOWN, EndpointConnectionError(endpoint_url="https://secrets")])
def test_every_callback_gets_a_server_error_while_the_secret_cannot_be_read(
    twilio_callbacks: CallbacksDoor, log: Log, counted: Counted, trouble: Exception
) -> None:
    twilio_callbacks.secrets.trouble = trouble
    assert twilio_callbacks.answers(callback_request()) == 500
    assert counted() == {"TwilioCallbacksFailed": 1}
    (line,) = log()
    assert "cannot be read" in line["reason"]
    twilio_callbacks.secrets.trouble = None
    assert twilio_callbacks.answers(callback_request()) == 204


def test_callbacks_get_a_server_error_while_the_secret_lacks_a_current_value(
    twilio_callbacks: CallbacksDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_: CachedSecret) -> None:
        raise LookupError("the secret has no current value; add one")

    monkeypatch.setattr(CachedSecret, "current", none)
    assert twilio_callbacks.answers(callback_request()) == 500


def test_a_replaced_auth_token_is_used_after_half_a_minute(
    twilio_callbacks: CallbacksDoor, clock: FakeClock
) -> None:
    new = callback_request(signature=sign(PUBLIC_URL + PATH, FIELDS, "another token"))
    assert (twilio_callbacks.answers(callback_request()), twilio_callbacks.answers(new)) == (204, 403)
    twilio_callbacks.secrets.rotate(SECRET.replace(TOKEN, "another token"), NOW)
    clock.advance(30)
    assert (twilio_callbacks.answers(new), twilio_callbacks.answers(callback_request())) == (204, 403)
    assert len(twilio_callbacks.secrets.asked) == 2


def test_the_twilio_secret_may_contain_further_fields(clock: FakeClock) -> None:
    door = CallbacksDoor(clock, SECRET.replace("}", ', "api_key": "SK1", "api_key_secret": "x"}'))
    assert door.answers(callback_request()) == 204


def test_the_log_contains_only_the_id_and_the_status_of_a_callback(
    twilio_callbacks: CallbacksDoor, log: Log
) -> None:
    for event in (
        callback_request(),
        callback_request(signature="no"),
        callback_request(body="Body=secret&Body=secret"),
    ):
        twilio_callbacks.answers(event)
    twilio_callbacks.queue.trouble = DOWN
    twilio_callbacks.answers(callback_request())
    lines = log()
    assert [line["message"] for line in lines] == [
        "callback queued",
        "request refused",
        "request refused",
        "request not accepted",
    ]
    assert (lines[0]["message_sid"], lines[0]["message_status"], lines[0]["id"]) == (SID, "delivered", "s-1")
    secrets = (NUMBER, "+12025550123", ACCOUNT, TOKEN, "secret")
    assert not [text for text in secrets if text in json.dumps(lines)]


texts = st.text(max_size=60)
strange = st.none() | st.booleans() | st.integers() | texts | st.lists(texts, max_size=2)
header = st.sampled_from(["content-type", "x-twilio-signature"]) | texts
changed = st.dictionaries(
    st.sampled_from(["rawPath", "rawQueryString", "headers", "body", "isBase64Encoded"]),
    strange | st.dictionaries(header, strange),
)


def is_signed(event: Any) -> bool:
    """Return whether Twilio's own validator accepts the whole request."""
    form = base64.b64decode(event["body"]).decode() if event["isBase64Encoded"] else event["body"]
    url = PUBLIC_URL + event["rawPath"] + ("?" if event["rawQueryString"] else "") + event["rawQueryString"]
    fields = dict(parse_qsl(form, keep_blank_values=True))
    return bool(RequestValidator(TOKEN).validate(url, fields, event["headers"]["x-twilio-signature"]))


@given(changed, st.booleans())
def test_any_request_gets_a_response_and_only_a_signed_callback_is_queued(changes: Any, bare: bool) -> None:
    door = CallbacksDoor(FakeClock())
    event = changes if bare else {**callback_request(), **changes}
    queued = door.answers(event) == 204
    assert len(door.queue.bodies) == queued
    assert not queued or is_signed(event)


@given(st.dictionaries(texts, texts, max_size=6), texts, st.binary(max_size=40))
def test_a_callback_signed_without_the_auth_token_is_refused(
    fields: dict[str, str], token: str, signature: bytes
) -> None:
    door = CallbacksDoor(FakeClock())
    form = {**FIELDS, **fields}
    for forged in (sign(PUBLIC_URL + PATH, form, token), signature.decode("latin-1")):
        assert door.answers(callback_request(form, signature=forged)) in {400, 403}
    assert door.queue.bodies == []
