"""Records of the feedback queue, in every envelope and from any sender."""

import json
import re
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailroom.errors import Malformed
from mailroom.feedback.reader import read
from mailroom.message.message import Reference
from mailroom.message.outcome import Status
from mailroom.providers.keywords import KeywordText, Wish
from mailroom.providers.received import FeedbackItem
from tests.support.fuzz.inputs import bent, json_of
from tests.support.unit.feedback_words import (
    PUBLISHED,
    TOPIC,
    TOPICS,
    VALIDATED,
    events,
    malformed_words,
    ses_example,
    sms_event,
    sns,
    texted,
    twilio_event,
    two_way,
)
from tests.support.unit.post import Counted, Log

E164 = re.compile(r"\+[1-9][0-9]{1,14}")
FACTS = {
    *("sentAt", "deliveredAt", "readAt", "openedAt", "clickedAt", "delayedAt", "delay_type"),
    *("bouncedAt", "bounce_type", "bounce_subtype", "diagnostic_code", "undeliveredAt", "error_code"),
    *("complainedAt", "complaint_type", "complaint_subtype", "carrier_done_date"),
}


def test_an_event_is_read_identically_with_and_without_an_sns_envelope() -> None:
    bounce = ses_example("bounce")
    for body in (bounce, sns(bounce), sns(json.dumps(bounce))):
        assert events(body) == events(bounce)
    assert len(events(bounce)) == 1


@pytest.mark.parametrize(
    "topic", ["arn:aws:sns:eu-central-1:999999999999:mailroom-test-feedback", "", TOPIC + "x"]
)
def test_an_sns_envelope_from_a_foreign_topic_is_refused(topic: str) -> None:
    assert "topic" in malformed_words(sns(ses_example("send"), TopicArn=topic))
    assert "topic" in malformed_words(sns("hello", TopicArn=topic, Type="SubscriptionConfirmation"))


@pytest.mark.parametrize("body", [sns(VALIDATED), sns(VALIDATED + "\n"), VALIDATED, f"{VALIDATED}\n"])
def test_the_notification_by_which_ses_validates_an_sns_topic_is_ignored(body: Any, counted: Counted) -> None:
    assert events(body) == []
    assert counted() == {}


@pytest.mark.parametrize("type_", ["SubscriptionConfirmation", "UnsubscribeConfirmation"])
def test_a_subscription_confirmation_is_logged_without_its_token(type_: str, log: Log) -> None:
    assert events(sns("You have chosen to subscribe", Type=type_, Token="t" * 64)) == []
    (line,) = log()
    assert (line["kind"], "tttt" in json.dumps(line)) == (type_, False)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"eventType": "Teleported", "mail": "anything"}, "Teleported"),
        (
            {"notificationType": "AmazonSnsSubscriptionSucceeded", "message": "You have subscribed"},
            "AmazonSnsSubscriptionSucceeded",
        ),
    ],
)
def test_a_feedback_event_of_an_unknown_type_is_logged_and_counted(
    event: dict[str, str], kind: str, log: Log, counted: Counted
) -> None:
    assert events(sns(event)) == []
    (line,) = log()
    assert (line["level"], line["kind"], counted()) == ("WARNING", kind, {"EventsUnknown": 1})


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no",
        "{",
        "[" * 100_000,
        "null",
        "7",
        '"text"',
        "[]",
        "{}",
        '[[{"eventType": "Send"}]]',
        '{"Records": [{"EventSource": "aws:sns"}]}',
        '{"eventType": 7}',
        '{"source": "twilio"}',
        '{"source": "elsewhere"}',
        '"\\ud800"',
        "\ud800",
        json.dumps(sns("no JSON")),
        json.dumps(sns("[]")),
        json.dumps(sns("null")),
        json.dumps({**sns("{}"), "Message": 7}),
        json.dumps({**sns("{}"), "TopicArn": [TOPIC]}),
        json.dumps(sns(sns(ses_example("send")))),
    ],
)
def test_a_queue_body_that_is_not_an_event_is_malformed(body: str) -> None:
    with pytest.raises(Malformed):
        read(body, TOPICS)


def test_the_error_about_a_malformed_event_does_not_quote_the_body() -> None:
    secret = "vincent@example.com"
    in_mail = {**ses_example("send"), "mail": {secret: secret, "timestamp": secret, "headers": [secret]}}
    for body in (secret, {secret: 1}, {"eventType": [secret]}, sns(secret), sns(in_mail), in_mail):
        assert secret not in malformed_words(body)


def check_item(item: FeedbackItem, references: set[str]) -> None:
    """Check the invariants of every event and every text, even of a forged one."""
    if isinstance(item, KeywordText):
        assert E164.fullmatch(item.number)
        assert item.wish in get_args(Wish)
        assert len(item.sent_to) <= 64
        return
    expected = {"ses": "mail", "twilio": "sms", "aws": "sms"}
    assert item.key.event_type == expected[item.provider]
    assert Reference(item.key.id).text in references
    assert item.status is None or item.status in get_args(Status)
    assert item.facts.keys() <= FACTS
    assert all(isinstance(fact, int) or len(fact) <= 300 for fact in item.facts.values())
    assert len(item.detail) <= 300


BASES = [
    *(ses_example(name) for name in PUBLISHED),
    ses_example("notice_of_bounce"),
    twilio_event(),
    sms_event(),
    two_way(),
    texted(),
]


def references_in(value: Any) -> set[str]:
    """Return every text within a value that is a reference, without its attempt."""
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        return set().union(*map(references_in, value)) if value else set()
    try:
        return {Reference(Reference.read(value.strip()).id).text} if isinstance(value, str) else set()
    except Malformed:
        return set()


@settings(max_examples=100)
@given(bent(BASES), st.booleans())
def test_a_corrupted_event_is_rejected_or_affects_only_the_messages_that_the_event_names(
    event: Any, wrapped: bool
) -> None:
    try:
        items = read(json_of(sns(event) if wrapped else event), TOPICS)
    except Malformed:
        return
    for item in items:
        check_item(item, references_in(event))
