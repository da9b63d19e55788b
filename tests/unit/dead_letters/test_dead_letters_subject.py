"""The subject of a dead letter, by its queue and its body: often a message's key."""

import json
from typing import Any

import pytest

from mailroom.dead_letters.cause import Subject, subject_of
from mailroom.dead_letters.queue import DeadLetter, dead_letter_of
from mailroom.message.message import Key, Reference

HEADERS = [{"name": "From", "value": "x"}, {"name": "x-correlation-ID", "value": "bS0x"}]
SES = {"eventType": "Bounce", "mail": {"headers": HEADERS, "tags": {"correlation": ["other"]}}, "bounce": {}}
TAGGED = {"notificationType": "Bounce", "mail": {"headersTruncated": True, "tags": {"correlation": ["bS0x"]}}}
SMS = {"eventType": "TEXT_BLOCKED", "context": {"reference": "bS0x.2"}, "messageId": "x"}
RESEND = {"source": "resend", "event": {"type": "email.bounced", "data": {"tags": {"correlation": "bS0x"}}}}
TWILIO = {"source": "twilio", "reference": Reference("m-1", 3).text, "fields": {"MessageStatus": "sent"}}


def envelope(event: Any) -> dict[str, Any]:
    """Return the envelope in which SNS puts an event into a queue."""
    return {"Type": "Notification", "TopicArn": "arn:aws:sns:::x", "Message": json.dumps(event)}


def letter(queue: str, body: Any, undelivered: str = "") -> DeadLetter:
    text = body if isinstance(body, str) else json.dumps(body)
    return DeadLetter(queue, "r-1", "receipt", text, 3, 0, undelivered)


def subject_in(queue: str, body: Any) -> Subject:
    return subject_of(letter(queue, body))


MAIL = {"id": "m-1", "event_type": "mail", "to": "ada@example.com"}
SCHEDULERS = {"MessageBody": '{"id": "other", "event_type": "mail"}', "QueueUrl": "https://x"}
FAX = {"fax_id": "f-1", "to": "+16175551234", "attempt": 4, "not_before": 12.5}


@pytest.mark.parametrize(
    ("queue", "body", "key", "attempt"),
    [
        ("mail-dlq", MAIL, Key("m-1", "mail"), 1),
        ("mail-bulk-dlq", {**MAIL, "attempt": 2}, Key("m-1", "mail"), 2),
        ("mail-dlq", {**MAIL, "attempt": "two"}, Key("m-1", "mail"), 1),
        ("mail-dlq", {**MAIL, "attempt": True}, Key("m-1", "mail"), 1),
        ("mail-dlq", {**MAIL, "fax_id": "f-1"}, Key("m-1", "mail"), 1),
        ("mail-dlq", {**MAIL, "webhook_id": "msg_1", "name": "sent.1"}, Key("m-1", "mail"), 1),
        ("fax-dlq.fifo", {**FAX, "webhook_id": "msg_1"}, Key("f-1", "fax"), 4),
        ("mail-dlq", {**MAIL, **SCHEDULERS}, Key("m-1", "mail"), 1),
        ("webhook-dlq", {**MAIL, "event_type": "webhook", **SCHEDULERS}, Key("m-1", "webhook"), 1),
        ("fax-dlq.fifo", FAX, Key("f-1", "fax"), 4),
        ("fax-retry-dlq", FAX, Key("f-1", "fax"), 4),
        ("fax-dlq.fifo", {"id": "f-1", "event_type": "fax"}, Key("f-1", "fax"), 1),
        ("webhook-dlq", {"id": "w-1", "event_type": "webhook"}, Key("w-1", "webhook"), 1),
    ],
)
def test_a_dead_lettered_message_is_identified_by_its_key_and_attempt(
    queue: str, body: Any, key: Key, attempt: int
) -> None:
    assert subject_in(queue, body) == Subject("message", key, attempt)


def test_a_dead_lettered_callback_is_identified_by_the_message_it_reports() -> None:
    body = {"webhook_id": "msg_1", "id": "m-1", "event_type": "mail", "name": "sent.1", "url": "https://x"}
    assert subject_in("webhook-dlq", body) == Subject("callback", Key("m-1", "mail"), detail="sent.1")


@pytest.mark.parametrize(
    ("queue", "body"),
    [
        ("collect-dlq", {"campaign": "weekly", "scheduled_at": "2026-11-18T13:00:00Z"}),
        (
            "collect-dlq",
            {"campaign": "weekly", "run": "2026-11-18T13:00Z", "start": "s", "page": 7, "cursor": 1},
        ),
        (
            "audience-dlq",
            {
                "campaign": "weekly",
                "run": "2026-11-18T13:00Z",
                "scheduled_at": "2026-11-18T13:00:00Z",
                "start": 1,
                "recipients": [{"key": "1"}],
            },
        ),
    ],
)
def test_a_dead_letter_of_a_campaign_is_identified_by_the_campaign_and_run(
    queue: str, body: dict[str, Any]
) -> None:
    assert subject_in(queue, body) == Subject("campaign", detail="weekly, run 2026-11-18T13:00Z")


@pytest.mark.parametrize("inner", [SES, TAGGED, RESEND, SMS, TWILIO])
@pytest.mark.parametrize("wrap", [lambda event: event, envelope], ids=["raw", "notification"])
def test_a_dead_lettered_provider_event_is_identified_by_the_message_it_refers_to(
    inner: Any, wrap: Any
) -> None:
    event_type = "sms" if inner in (SMS, TWILIO) else "mail"
    assert subject_in("feedback-dlq", wrap(inner)) == Subject("event", Key("m-1", event_type))


@pytest.mark.parametrize(
    "body",
    [
        {},
        "[]",
        '"text"',
        "7",
        envelope("Successfully validated SNS topic for Amazon SES event publishing."),
        {"source": "twilio", "reference": "!"},
        {"source": "twilio", "reference": 7},
        {"mail": {"headers": "none", "tags": {"correlation": "bS0x"}}},
        {"mail": {"headers": [7, {"name": "X-Correlation-ID"}], "tags": {"correlation": []}}},
        {"context": {"reference": None}},
        {"source": "resend", "event": {"data": {"tags": {"correlation": 7}}}},
        {"source": "resend", "event": {"data": {"tags": {"correlation": "!"}}}},
    ],
)
def test_a_dead_lettered_event_without_a_valid_message_reference_is_identified_without_a_key(
    body: Any,
) -> None:
    assert subject_in("feedback-dlq", body) == Subject("event")


@pytest.mark.parametrize(
    ("queue", "body", "problem"),
    [
        ("mail-dlq", "not JSON", "the body is not a JSON object"),
        ("mail-dlq", '["a"]', "the body is not a JSON object"),
        ("mail-dlq", {"event_type": "mail"}, "`id` or `event_type` is missing"),
        ("mail-dlq", {"fax_id": "f-1"}, "`id` or `event_type` is missing"),
        ("fax-dlq.fifo", {"to": "+16175551234"}, "`fax_id` is missing"),
        ("webhook-dlq", {"webhook_id": "msg_1"}, "`id` or `event_type` is missing"),
        ("mail-dlq", SCHEDULERS, "`id` or `event_type` is missing"),
        ("collect-dlq", {"campaign": "weekly"}, "is not a start or a page"),
        ("audience-dlq", {"campaign": "weekly"}, "not a chunk"),
        ("mail-dlq", {**MAIL, "id": "ü" * 1025}, "`id` is longer than the 2048 bytes"),
        ("mail-dlq", {**MAIL, "event_type": "x" * 1025}, "`event_type` is longer than the 1024 bytes"),
        ("mail-dlq", '{"id": "m-1", "copies": 1E+99999999999999999999}', "the body has a number with over"),
        ("feedback-dlq", "not JSON", "the body is not JSON"),
        ("feedback-dlq", {"Message": "cut o"}, "the body is not JSON"),
    ],
)
def test_a_malformed_dead_letter_is_described_by_the_problem_of_its_body(
    queue: str, body: Any, problem: str
) -> None:
    subject = subject_in(queue, body)
    assert (subject.kind, subject.key) == ("malformed", None)
    assert problem in subject.detail


def test_a_dead_letter_with_the_longest_id_that_dynamodb_allows_is_identified() -> None:
    assert subject_in("mail-dlq", {**MAIL, "id": "x" * 2048}).key == Key("x" * 2048, "mail")


def test_a_deeply_nested_dead_letter_is_handled_without_an_error() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert subject_in("mail-dlq", deep).kind == "malformed"
    assert subject_in("feedback-dlq", deep).key is None
    event: Any = TWILIO
    for _ in range(9):
        event = envelope(event)
    assert subject_in("feedback-dlq", event) == Subject("event")


def test_the_receive_count_time_and_error_of_a_dead_letter_are_read_from_sqs() -> None:
    message = {
        "MessageId": "r-1",
        "ReceiptHandle": "receipt",
        "Body": "{}",
        "Attributes": {"ApproximateReceiveCount": "13", "SentTimestamp": "1795251600000", "SenderId": "A"},
        "MessageAttributes": {
            "ERROR_MESSAGE": {"DataType": "String", "StringValue": "x" * 500},
            "ERROR_CODE": {"DataType": "String", "StringValue": "AccessDenied"},
        },
    }
    dead = dead_letter_of("mail-dlq", message)
    assert dead.undelivered.startswith("AccessDenied: xxx")
    assert len(dead.undelivered) == 200
    assert (dead.receives, dead.sent_at, dead.queue) == (13, 1_795_251_600_000, "mail-dlq")
    del message["MessageAttributes"]
    assert dead_letter_of("mail-dlq", message).undelivered == ""


def test_a_schedulers_error_attribute_is_ignored_if_the_letter_came_from_a_queue() -> None:
    message = {
        "MessageId": "r-1",
        "ReceiptHandle": "receipt",
        "Body": "{}",
        "Attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "0",
            "DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:123456789012:mailroom-test-collect",
        },
        "MessageAttributes": {"ERROR_CODE": {"DataType": "String", "StringValue": "AccessDenied"}},
    }
    assert dead_letter_of("collect-dlq", message).undelivered == ""


@pytest.mark.parametrize("levels", [600, 800, 900])
def test_a_dead_letter_with_hundreds_of_nested_levels_is_malformed(levels: int) -> None:
    deep = "[" * levels + "]" * levels
    callback = f'{{"webhook_id": "a", "id": "f-1", "event_type": "fax", "name": {deep}}}'
    assert subject_of(letter("webhook-dlq", callback)).kind == "malformed"
    event = f'{{"mail": {{"headers": [{{"name": {deep}}}]}}}}'
    assert subject_of(letter("feedback-dlq", event)).kind == "malformed"
