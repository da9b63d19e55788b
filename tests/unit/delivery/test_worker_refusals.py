"""Messages that a worker does not submit, and how they end."""

import json

import pytest

from mailroom.channels.mail.contract import Mail
from mailroom.clock import iso
from mailroom.errors import Invalid
from mailroom.ledger.ledger import Ledger
from tests.support.unit.fakes import client_error
from tests.support.unit.post import Counted, Make
from tests.support.unit.shared import BUCKET, NOW, Aws, FakeClock, Item, claimed, item


@pytest.mark.parametrize("done", ["complete", "fail"])
def test_a_duplicate_of_a_sent_or_failed_message_is_dropped(
    make_post: Make, ledger: Ledger, counted: Counted, aws: Aws, done: str
) -> None:
    arguments = {"complete": ("ses", "p-0"), "fail": ("rejected", "no")}[done]
    getattr(ledger, done)(claimed(ledger), *arguments)
    before = aws.item()
    worker = make_post()
    assert worker.handle(item()) == {}
    assert (worker.submitted, aws.item()) == ([], before)
    assert counted() == {"Duplicates": 1}


def test_a_duplicate_of_an_earlier_attempt_is_dropped(make_post: Make, ledger: Ledger) -> None:
    ledger.retry_later(claimed(ledger), "busy", "no")
    worker = make_post()
    assert worker.handle(item()) == {}
    assert worker.submitted == []
    assert worker.handle(item(attempt=2)) == {}
    assert worker.submitted == ["m-1"]


@pytest.mark.parametrize(("held", "seconds"), [(0, 121), (20, 101), (100.5, 21), (119.9, 2)])
def test_a_message_that_another_worker_has_claimed_is_retried_when_the_lease_is_over(
    make_post: Make, ledger: Ledger, clock: FakeClock, held: float, seconds: int
) -> None:
    claimed(ledger)
    clock.advance(held)
    worker = make_post()
    assert worker.handle(item()) == {"r-0": seconds}
    assert worker.submitted == []


def test_an_expired_message_fails_and_is_not_sent(make_post: Make, aws: Aws, counted: Counted) -> None:
    worker = make_post()
    assert worker.handle(item(expires_at=iso(NOW))) == {}
    assert worker.submitted == []
    assert aws.item()["error"] == {
        "code": "expired",
        "message": "expires_at: 2026-11-21T09:00:00.000Z is past",
    }
    assert counted() == {"Expired": 1}


def test_a_message_is_sent_one_millisecond_before_it_expires(make_post: Make) -> None:
    worker = make_post()
    worker.handle(item(expires_at=iso(NOW + 0.001)))
    assert worker.submitted == ["m-1"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"to": ...}, "to: is missing; set `to` (or `email`) to one address or a list of them"),
        ({"event_type": "sms"}, "event_type: 'sms' is not allowed here; use mail"),
        ({"headers": {"X-Team": "a\nb"}}, "headers.X-Team: is not a header value; use 1 to 995"),
    ],
)
def test_an_invalid_message_in_the_queue_fails_with_the_reason(
    make_post: Make, aws: Aws, changes: Item, sentence: str
) -> None:
    worker = make_post()
    assert worker.handle(item(**changes), item(id="m-2")) == {}
    stored = aws.item(event_type=changes.get("event_type", "mail"))
    assert stored["status"] == "failed"
    assert stored["error"]["message"].startswith(sentence)
    assert worker.submitted == ["m-2"]


def test_a_message_that_the_channels_adapter_finds_invalid_fails_with_the_reason(
    make_post: Make, aws: Aws, counted: Counted
) -> None:
    def prepare(message: Mail) -> None:
        raise Invalid("template", "'x' is unknown; use one of: default")

    worker = make_post(prepare=prepare)
    assert worker.handle(item()) == {}
    assert aws.item()["error"] == {
        "code": "invalid",
        "message": "template: 'x' is unknown; use one of: default",
        "field": "template",
    }
    assert (worker.submitted, counted()) == ([], {"Rejected": 1})


def test_after_an_aws_error_before_the_submit_the_claim_is_released_and_the_message_is_retried(
    make_post: Make, aws: Aws
) -> None:
    def prepare(message: Mail) -> None:
        raise client_error("SlowDown", status=503)

    worker = make_post(prepare=prepare)
    assert worker.handle(item(), receives=2) == {"r-0": 8}
    assert "startedAt" not in aws.item()
    assert "completedAt" not in aws.item()


def test_the_attributes_of_a_payload_in_s3_become_attributes_of_the_message(
    make_post: Make, aws: Aws
) -> None:
    content = {"text": "a long one", "city": "Arles"}
    aws.s3.put_object(Bucket=BUCKET, Key="runs/7.json", Body=json.dumps(content).encode())
    worker = make_post()
    assert worker.handle(item(text=..., payload_ref=f"s3://{BUCKET}/runs/7.json")) == {}
    (message,) = worker.adapter.submitted
    assert (message.text, message.variables["city"], message.subject) == ("a long one", "Arles", "Hello")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, f"payload_ref: 's3://{BUCKET}/runs/8.json' does not exist; put the object before the message"),
        (b"[]", "payload_ref: is not a JSON object: "),
        (b'{"text": 5}', "text: expected a string, got a number"),
        (b'{"text": "a", "bcc": "theo@example.com"}', "payload_ref: contains bcc, which is only allowed"),
        (b'{"city": "Arles"}', "subject: is set without text or html; add one, or use a template"),
    ],
)
def test_a_message_with_a_missing_or_invalid_payload_in_s3_fails_with_the_reason(
    make_post: Make, aws: Aws, content: bytes | None, sentence: str
) -> None:
    aws.s3.delete_object(Bucket=BUCKET, Key="runs/8.json")
    if content is not None:
        aws.s3.put_object(Bucket=BUCKET, Key="runs/8.json", Body=content)
    worker = make_post()
    assert worker.handle(item(text=..., payload_ref=f"s3://{BUCKET}/runs/8.json")) == {}
    assert aws.item()["error"]["message"].startswith(sentence)
    assert worker.submitted == []


def test_an_invalid_message_is_retried_and_does_not_fail_while_another_worker_has_the_claim(
    make_post: Make, ledger: Ledger, aws: Aws
) -> None:
    claimed(ledger)
    worker = make_post()
    assert worker.handle(item(subject=5)) != {}
    assert aws.item()["status"] == "sending"
