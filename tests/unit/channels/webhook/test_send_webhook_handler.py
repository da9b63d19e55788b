"""The handler send_webhook: real requests over the loopback address, signed with its secret."""

import json
import sys
from collections.abc import Iterator

import boto3
import pytest
from standardwebhooks import Webhook as Receiver

from mailroom.environment import WebhookSender, variables_of
from tests.support.unit.events import failures, lambda_context, sqs_event
from tests.support.unit.functions import Load
from tests.support.unit.loopback import serving, status
from tests.support.unit.shared import LEDGER, Aws
from tests.support.unit.webhook_post import WEBHOOK_SETTINGS, callback
from tests.support.unit.webhooks import KEY, key_of, webhook_item


@pytest.fixture(autouse=True)
def _webhook_environment(load: Load, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the variables of the webhook stack, with the loopback network allowed."""
    secrets = boto3.client("secretsmanager")
    arn = secrets.create_secret(Name="mailroom-test-webhook-signing", SecretString=KEY)["ARN"]
    loopback = {"allowed_networks": ["127.0.0.0/8", "::1/128"], "allowed_schemes": ["https", "http"]}
    settings = {**WEBHOOK_SETTINGS, **loopback, "allowed_ports": [], "signing_secret_arn": arn}
    variables = variables_of(WebhookSender(**settings))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    yield
    secrets.delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)
    sys.modules.pop("send_webhook", None)


def verified_headers(request: bytes, key: str) -> dict[str, str]:
    """Return the headers of a request. Raises if its signature is not valid for `key`."""
    head, _, body = request.decode().partition("\r\n\r\n")
    lines = (line.split(": ", 1) for line in head.split("\r\n")[1:])
    headers = {name.lower(): value for name, value in lines}
    Receiver(key).verify(body, headers)
    return headers


def test_send_webhook_sends_a_signed_message_and_a_signed_callback(load: Load, aws: Aws) -> None:
    aws.put(LEDGER, id="f-1", event_type="fax", status="sent", callbacks={})
    with serving(status(200)) as server:
        url = f"http://localhost:{server.port}/hook"
        event = sqs_event(webhook_item(url=url), callback(url=url, name="sent"))
        assert failures(load("send_webhook")(event, lambda_context())) == []
    first, second = (verified_headers(request, key_of("localhost")) for request in server.requests)
    assert aws.item("w-1", "webhook")["provider_id"] == first["webhook-id"]
    assert second["webhook-id"] == "msg_f1"
    assert first["content-type"] == "application/json"
    assert aws.item("f-1", "fax")["callbacks"]["sent"]["status"] == "delivered"


def test_send_webhook_retries_a_failed_webhook_but_not_a_callback_to_a_forbidden_url(
    load: Load, aws: Aws
) -> None:
    with serving(status(503)) as server:
        url = f"http://127.0.0.1:{server.port}/hook"
        event = sqs_event(webhook_item(url=url), callback(url="https://169.254.169.254/"), json.dumps([]))
        assert failures(load("send_webhook")(event, lambda_context())) == ["r-0", "r-2"]
    assert len(server.requests) == 1
