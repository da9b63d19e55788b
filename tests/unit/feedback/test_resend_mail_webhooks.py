"""Webhooks of Resend: a request with a valid signature is queued, any other gets a status alone."""

import json
import time
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from tests.support.unit.events import lambda_context
from tests.support.unit.functions import Load
from tests.support.unit.post import Counted, Log
from tests.support.unit.resend_mail import SECRET, WEBHOOK_SECRET, ResendDoor, resend_event, webhook_request
from tests.support.unit.shared import NOW, Aws, FakeClock
from tests.support.unit.webhooks import DENIED

OTHER = "whsec_" + "QW5vdGhlciBzaWduaW5nIHNlY3JldA=="


@pytest.fixture
def resend_webhooks(clock: FakeClock) -> ResendDoor:
    return ResendDoor(clock)


def test_a_signed_event_of_the_provider_resend_is_queued_without_the_recipients_address(
    resend_webhooks: ResendDoor, counted: Counted
) -> None:
    assert (
        resend_webhooks.answers(webhook_request(resend_event("email.bounced", bounce={"type": "Permanent"})))
        == 204
    )
    (body,) = map(json.loads, resend_webhooks.queue.bodies)
    assert body["source"] == "resend"
    assert body["event"]["data"]["tags"] == resend_event()["data"]["tags"]
    assert body["event"]["data"]["bounce"]["type"] == "Permanent"
    assert "ada@example.com" not in resend_webhooks.queue.bodies[0]
    assert counted() == {"ResendMailEvents": 1}


@pytest.mark.parametrize(
    "request_",
    [
        webhook_request(resend_event(), key=OTHER),
        webhook_request(resend_event(), svix_signature=None),
        webhook_request(resend_event(), svix_signature="v1,ü v2,x"),
        webhook_request(resend_event(), svix_signature="v1,\ud800"),
        webhook_request(resend_event(), svix_id="msg_2"),
        webhook_request(resend_event(), svix_timestamp=str(int(NOW) + 1)),
        webhook_request(resend_event(), svix_timestamp="soon"),
        webhook_request(resend_event(), svix_timestamp=None),
        {**webhook_request(resend_event()), "body": json.dumps(resend_event(id_="m-2"))},
        webhook_request(resend_event(), at=NOW - 301),
        webhook_request(resend_event(), at=NOW + 301),
    ],
)
def test_a_webhook_without_a_valid_and_recent_signature_is_refused(
    resend_webhooks: ResendDoor, request_: Any, counted: Counted
) -> None:
    assert resend_webhooks.answers(request_) == 401
    assert resend_webhooks.queue.bodies == []
    assert counted() == {"ResendMailEventsRefused": 1}


def test_a_webhook_with_several_signatures_is_valid_if_one_of_them_is_valid(
    resend_webhooks: ResendDoor,
) -> None:
    ours = webhook_request(resend_event())["headers"]["svix-signature"]
    replaced = webhook_request(resend_event(), key=OTHER)["headers"]["svix-signature"]
    assert (
        resend_webhooks.answers(webhook_request(resend_event(), svix_signature=f"{replaced} {ours}")) == 204
    )


@pytest.mark.parametrize("body", ["{", "[]", "null", '{"type": 5}', "[" * 100_000])
def test_a_signed_webhook_body_that_is_not_an_event_is_refused(
    resend_webhooks: ResendDoor, body: str
) -> None:
    assert resend_webhooks.answers(webhook_request(body)) == 400


def test_a_webhook_body_over_the_size_limit_is_refused(resend_webhooks: ResendDoor) -> None:
    assert resend_webhooks.answers(webhook_request("x" * 300_000)) == 413


@pytest.mark.parametrize(
    "text", ["", "no JSON", "{}", '{"webhook_secret": ""}', '{"webhook_secret": "whsec_not/base64!!!!!!!!!"}']
)
def test_while_the_secret_is_invalid_a_webhook_gets_a_server_error_so_that_its_sender_retries(
    clock: FakeClock, text: str, log: Log
) -> None:
    assert ResendDoor(clock, text).answers(webhook_request(resend_event())) == 500
    assert "cannot be checked" in log()[-1]["message"]
    assert not text or text not in str(log())


def test_while_sqs_or_the_secret_is_unavailable_a_webhook_gets_a_server_error(
    resend_webhooks: ResendDoor,
) -> None:
    resend_webhooks.secrets.trouble = DENIED
    assert resend_webhooks.answers(webhook_request(resend_event())) == 500
    resend_webhooks.secrets.trouble = None
    resend_webhooks.queue.trouble = EndpointConnectionError(endpoint_url="https://sqs")
    assert resend_webhooks.answers(webhook_request(resend_event())) == 503


def test_the_handler_puts_an_event_from_a_webhook_of_the_provider_resend_into_the_feedback_queue(
    load: Load, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = boto3.client("secretsmanager").create_secret(Name="mailroom-test-resend", SecretString=SECRET)
    monkeypatch.setenv("RESEND_SECRET_ARN", created["ARN"])
    monkeypatch.setenv("FEEDBACK_QUEUE_URL", aws.urls["feedback"])
    assert load("resend_mail_events")(webhook_request(resend_event(), at=time.time()), lambda_context()) == {
        "statusCode": 204
    }
    (body,) = aws.bodies("feedback")
    assert body["event"]["type"] == "email.delivered"
    assert WEBHOOK_SECRET not in json.dumps(body)
