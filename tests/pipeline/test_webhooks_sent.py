"""Webhooks: callbacks about other channels' messages, and messages of their own."""

from lab.harness import callbacks
from lab.harness.expected import Item
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import Pipeline, until

PAYLOAD = {"order": 7, "lines": [{"sku": "a-1", "paid": True}], "note": None, "name": "Zoë"}
SECONDS = 30.0


def webhook_to(pipeline: Pipeline, id_: str, answer: str = "ok") -> Item:
    """A message to the receiver, which answers so."""
    url = pipeline.receiver(f"{answer}/messages/{id_}")
    return {"id": id_, "event_type": "webhook", "url": url, "payload": PAYLOAD}


def test_each_outcome_of_a_mail_is_posted_to_its_callback_url(pipeline: Pipeline) -> None:
    pipeline.put(mail_item("told", callback_url=pipeline.receiver("ok/callbacks/told")))
    pipeline.one_mail("told")
    payloads = {each["status"]: each for each in pipeline.until_told("told", 2)}
    completed = int(pipeline.ledger("told")["completedAt"]) / 1000
    assert abs(payloads["sent"].pop("timestamp") - completed) <= 1
    assert abs(payloads["sent"].pop("timestamp_ms") - 1000 * completed) <= 1000
    assert payloads["sent"] == {
        "id": "told",
        "event_type": "mail",
        "status": "sent",
        "message": "Mail sent successfully",
    }
    assert payloads["delivered"]["message"] == "Mail delivered"


def test_the_outcome_of_a_callback_is_recorded_in_the_ledger_and_has_no_callback_itself(
    pipeline: Pipeline,
) -> None:
    pipeline.put(mail_item("noted", callback_url=pipeline.receiver("ok/callbacks/noted")))
    pipeline.until_told("noted", 2)
    until(lambda: len(pipeline.ledger("noted").get("callbacks", {})) == 2, SECONDS, lambda: "not noted")
    results = pipeline.ledger("noted")["callbacks"]
    assert results.keys() == {"sent.1", "delivered.1"}
    for each in results.values():
        assert (each["status"], each["code"], each["tries"]) == ("delivered", 200, 1)
    assert len(pipeline.received("callbacks", "noted")) == 2


def test_the_callback_of_a_failed_mail_contains_its_reason(pipeline: Pipeline) -> None:
    url = pipeline.receiver("ok/callbacks/told-badly")
    pipeline.put(mail_item("told-badly", email="nobody", callback_url=url))
    (payload,) = pipeline.until_told("told-badly")
    assert (payload["status"], payload["event_type"]) == ("failed", "mail")
    assert payload["message"].startswith("Failed to send mail: email: ")


def test_a_webhook_message_is_delivered_once_with_its_payload_and_a_valid_signature(
    pipeline: Pipeline,
) -> None:
    pipeline.put(webhook_to(pipeline, "hook"))
    pipeline.until_ended("hook", event_type="webhook", seconds=SECONDS)
    (request,) = callbacks.read(pipeline.received("messages", "hook"), pipeline.receivers_key())
    assert request.verified
    assert request.payload == PAYLOAD
    assert pipeline.ledger("hook", "webhook")["status"] == "sent"


def test_a_webhook_to_an_endpoint_that_fails_is_tried_again_with_the_same_webhook_id(
    pipeline: Pipeline,
) -> None:
    pipeline.put(webhook_to(pipeline, "flaky", "flaky/2"))
    pipeline.until_ended("flaky", event_type="webhook", seconds=SECONDS)
    requests = callbacks.read(pipeline.received("messages", "flaky"), pipeline.receivers_key())
    assert len(requests) == 3
    assert len({request.webhook_id for request in requests}) == 1
    assert all(request.verified for request in requests)
    assert pipeline.ledger("flaky", "webhook")["status"] == "sent"


def test_a_callback_to_an_endpoint_that_fails_is_tried_again(pipeline: Pipeline) -> None:
    pipeline.put(mail_item("flaky-told", callback_url=pipeline.receiver("flaky/1/callbacks/flaky-told")))
    pipeline.until_told("flaky-told", 2)
    until(lambda: len(pipeline.ledger("flaky-told").get("callbacks", {})) == 2, SECONDS, lambda: "not noted")
    bodies: dict[str, list[str]] = {}
    for request in pipeline.received("callbacks", "flaky-told"):
        bodies.setdefault(request["headers"]["webhook-id"], []).append(request["body"])
    assert len(bodies) == 2
    assert all(len(set(each)) == 1 for each in bodies.values())
    assert max(map(len, bodies.values())) == 2


def test_a_webhook_fails_without_a_second_try_if_its_endpoint_responds_with_gone(pipeline: Pipeline) -> None:
    pipeline.put(webhook_to(pipeline, "gone", "gone"))
    pipeline.until_ended("gone", event_type="webhook", seconds=SECONDS)
    row = pipeline.ledger("gone", "webhook")
    assert (row["status"], row["error"]["code"]) == ("failed", "rejected")
    assert len(pipeline.received("messages", "gone")) == 1


def test_a_webhook_has_two_signatures_after_a_rotation_of_the_signing_secret(pipeline: Pipeline) -> None:
    old = pipeline.receivers_key()
    name = pipeline.output("WebhookKeysSecretName")
    pipeline.secrets.put_secret_value(SecretId=name, SecretString="b" * 44)
    new = pipeline.receivers_key()
    pipeline.restart(pipeline.output("SendWebhookFunctionName"))  # a cold start reads it anew
    pipeline.put(webhook_to(pipeline, "rotated"))
    pipeline.until_ended("rotated", event_type="webhook", seconds=SECONDS)
    request = pipeline.received("messages", "rotated")
    assert request[0]["headers"]["webhook-signature"].count("v1,") == 2
    assert all(callbacks.read(request, key)[0].verified for key in (old, new))
