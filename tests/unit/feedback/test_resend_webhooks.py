"""Resend's webhooks: what is signed is queued, everything else is refused and told nothing."""

import importlib
import itertools
import json
import sys
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from tests.support.unit.events import lambda_context
from tests.support.unit.post import Counted, Log
from tests.support.unit.resend import SECRET, WEBHOOK_SECRET, Door, event, post
from tests.support.unit.shared import NOW, Aws, FakeClock
from tests.support.unit.webhooks import DENIED

OTHER = "whsec_" + "QW5vdGhlciBzaWduaW5nIHNlY3JldA=="
_NAMES = itertools.count()


@pytest.fixture
def door(clock: FakeClock) -> Door:
    return Door(clock)


def test_a_signed_event_is_queued_without_what_nobody_needs(door: Door, counted: Counted) -> None:
    assert door.answers(post(event("email.bounced", bounce={"type": "Permanent"}))) == 204
    (body,) = map(json.loads, door.queue.bodies)
    assert body["source"] == "resend"
    assert body["event"]["data"]["tags"] == event()["data"]["tags"]
    assert body["event"]["data"]["bounce"]["type"] == "Permanent"
    assert "ada@example.com" not in door.queue.bodies[0]
    assert counted() == {"ResendEvents": 1}


@pytest.mark.parametrize(
    "request_",
    [
        post(event(), key=OTHER),
        post(event(), svix_signature=None),
        post(event(), svix_signature="v1,ü v2,x"),
        post(event(), svix_id="msg_2"),
        post(event(), svix_timestamp=str(int(NOW) + 1)),
        post(event(), svix_timestamp="soon"),
        post(event(), svix_timestamp=None),
        {**post(event()), "body": json.dumps(event(id_="m-2"))},
        post(event(), at=NOW - 301),
        post(event(), at=NOW + 301),
    ],
)
def test_what_resend_has_not_signed_now_is_refused(door: Door, request_: Any, counted: Counted) -> None:
    assert door.answers(request_) == 401
    assert door.queue.bodies == []
    assert counted() == {"ResendEventsRefused": 1}


def test_while_a_secret_is_replaced_either_signature_will_do(door: Door) -> None:
    ours = post(event())["headers"]["svix-signature"]
    other = post(event(), key=OTHER)["headers"]["svix-signature"]
    assert door.answers(post(event(), svix_signature=f"{other} {ours}")) == 204


@pytest.mark.parametrize("body", ["{", "[]", "null", '{"type": 5}', "[" * 100_000])
def test_what_is_signed_and_no_event_is_refused(door: Door, body: str) -> None:
    assert door.answers(post(body)) == 400


def test_what_is_too_large_is_not_read(door: Door) -> None:
    assert door.answers(post("x" * 300_000)) == 413


@pytest.mark.parametrize(
    "text", ["", "no JSON", "{}", '{"webhook_secret": ""}', '{"webhook_secret": "whsec_not/base64!!!!!!!!!"}']
)
def test_without_its_secret_nothing_is_taken_and_resend_tries_again(
    clock: FakeClock, text: str, log: Log
) -> None:
    assert Door(clock, text).answers(post(event())) == 500
    assert "cannot be checked" in log()[-1]["message"]
    assert not text or text not in str(log())


def test_a_secret_that_cannot_be_read_is_ours_to_put_right(door: Door) -> None:
    door.secrets.trouble = DENIED
    assert door.answers(post(event())) == 500


def test_while_sqs_cannot_be_reached_resend_tries_again(door: Door) -> None:
    door.queue.trouble = EndpointConnectionError(endpoint_url="https://sqs")
    assert door.answers(post(event())) == 503


def test_an_event_goes_from_the_request_into_the_queue(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    import time

    name = f"mailroom-test-resend-{next(_NAMES)}"
    arn = boto3.client("secretsmanager").create_secret(Name=name, SecretString=SECRET)["ARN"]
    monkeypatch.setenv("RESEND_SECRET_ARN", arn)
    monkeypatch.setenv("FEEDBACK_QUEUE_URL", aws.urls["mail"])
    sys.modules.pop("resend_events", None)
    handler = importlib.import_module("resend_events").handler
    sys.modules.pop("resend_events", None)
    assert handler(post(event(), at=time.time()), lambda_context()) == {"statusCode": 204}
    (body,) = aws.bodies("mail")
    assert body["event"]["type"] == "email.delivered"
    assert WEBHOOK_SECRET not in json.dumps(body)
