"""The cause of a dead letter: a code for programs, and a sentence that ends with the next step."""

from typing import Any

import pytest

from mailroom.dead_letters.cause import Cause, Subject, cause_of
from mailroom.dead_letters.queue import DeadLetter
from mailroom.message.message import Key

MESSAGE = Subject("message", Key("m-1", "mail"))
TROUBLE = {"code": "misconfigured", "message": "the sender is not verified."}
FAILED = {"status": "failed", "code": 503, "tries": 20}


def cause(
    item: dict[str, Any], subject: Subject = MESSAGE, queue: str = "mail-dlq", undelivered: str = ""
) -> Cause:
    letter = DeadLetter(queue, "r-1", "receipt", "{}", 3, 0, undelivered)
    return cause_of(letter, subject, item)


def attempt(number: int) -> Subject:
    return Subject("message", Key("f-1", "fax"), number)


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ({}, "unclaimed"),
        ({"status": "scheduled"}, "unclaimed"),
        ({"status": "sending", "provider_id": "p-1"}, "submitted"),
        ({"status": "sending", "startedAt": 1}, "outcome_unknown"),
        ({"status": "sending", "unsettled_tries": ["1 "], "trouble": {"code": "in_doubt"}}, "in_doubt"),
        ({"status": "sending", "unsettled_tries": ["1 "], "trouble": {"code": "retry"}}, "outcome_unknown"),
        ({"status": "sending", "trouble": TROUBLE}, "misconfigured"),
        ({"status": "sending", "startedAt": 1, "trouble": {"code": "no_outcome"}}, "no_outcome"),
        (
            {"status": "sending", "unsettled_tries": ["1 "], "trouble": {"code": "look_up_failed"}},
            "look_up_failed",
        ),
        ({"status": "sent", "completedAt": 1, "attempts": 1}, "completed"),
        ({"status": "failed", "completedAt": 1}, "completed"),
        ({"status": "retrying", "attempts": 1}, "superseded"),
    ],
)
def test_the_cause_of_a_dead_lettered_message_is_derived_from_its_ledger_item(
    item: dict[str, Any], code: str
) -> None:
    assert cause(item).code == code


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ({"status": "retrying", "attempts": 1}, "unfounded"),
        ({}, "unfounded"),
        ({"status": "sending", "attempts": 1, "startedAt": 1}, "outcome_unknown"),
        ({"status": "retrying", "attempts": 2}, "unclaimed"),
        ({"status": "retrying", "attempts": 2, "trouble": TROUBLE}, "misconfigured"),
        ({"status": "retrying", "attempts": 3}, "superseded"),
    ],
)
def test_the_cause_of_a_dead_lettered_third_attempt_depends_on_how_many_attempts_are_finished(
    item: dict[str, Any], code: str
) -> None:
    assert cause(item, attempt(3), "fax-dlq.fifo").code == code


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (TROUBLE, "the sender is not verified; fix the cause, then put it back"),
        (
            {"code": "retry", "message": "HTTP 429"},
            "not accepted in any of its tries: HTTP 429; put it back when the problem is solved",
        ),
        (
            {"code": "unprepared", "message": "ClientError"},
            "its request could not be prepared (ClientError); "
            "see the sender function's log, then put it back",
        ),
        ({"code": "new", "message": "{braces} stay"}, "{braces} stay; fix the cause, then put it back"),
    ],
)
def test_the_cause_of_an_unsent_dead_letter_has_the_recorded_error_and_the_next_step(
    trouble: dict[str, str], sentence: str
) -> None:
    assert cause({"status": "sending", "trouble": trouble}) == Cause(trouble["code"], sentence)


def test_the_cause_of_a_campaign_start_that_eventbridge_scheduler_could_not_send_has_the_error() -> None:
    start = Subject("campaign", detail="weekly, run 2026-11-18T13:00Z")
    failed = cause({}, start, queue="collect-dlq", undelivered="AccessDenied: no")
    assert failed.code == "undelivered"
    assert "AccessDenied: no; fix the cause" in failed.message


@pytest.mark.parametrize(
    ("item", "code", "words"),
    [
        ({}, "callback_unsent", "see the log of send-webhook"),
        ({"callbacks": {"failed.1": FAILED}}, "callback_unsent", "callback sent.1"),
        ({"callbacks": {"sent.1": FAILED}}, "callback_refused", "in 20 tries, the last got HTTP 503"),
        ({"callbacks": {"sent.1": {**FAILED, "code": None}}}, "callback_refused", "the last got no answer"),
    ],
)
def test_the_cause_of_a_dead_lettered_callback_has_the_receivers_last_response(
    item: dict[str, Any], code: str, words: str
) -> None:
    failed = cause(item, Subject("callback", Key("m-1", "mail"), detail="sent.1"), "webhook-dlq")
    assert failed.code == code
    assert words in failed.message


def test_the_cause_of_a_malformed_dead_letter_describes_the_problem() -> None:
    assert cause({}, Subject("malformed", detail="no `id`")) == Cause(
        "malformed", "not a valid message: no `id`; find the program that sent it, then delete it"
    )


def test_a_dead_lettered_provider_event_has_the_cause_unrecorded() -> None:
    assert cause({}, Subject("event"), "feedback-dlq").code == "unrecorded"


@pytest.mark.parametrize(
    ("queue", "code", "words"),
    [
        ("collect-dlq", "uncollected", "a page of campaign weekly, run r, was not collected"),
        ("audience-dlq", "uncomposed", "no person gets a second message"),
    ],
)
def test_the_cause_of_a_campaigns_dead_letter_depends_on_its_queue(queue: str, code: str, words: str) -> None:
    failed = cause({}, Subject("campaign", detail="weekly, run r"), queue)
    assert failed.code == code
    assert words in failed.message
