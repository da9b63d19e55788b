"""What schedules send when the time has come: a key, read back and dispatched, or found taken back."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.clock import iso
from mailroom.dispatch.due import DueDispatcher, Mailbox
from mailroom.ledger.ledger import Ledger
from tests.support.unit.dispatching import made
from tests.support.unit.events import failures, sqs_event
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.shared import GROUP, MAILBOX, NOW, Aws, FakeClock, item, mail

Log = Callable[[], list[dict[str, Any]]]
KEYS = {"id": "m-1", "event_type": "mail"}


@pytest.fixture
def due(aws: Aws, clock: FakeClock, ledger: Ledger) -> DueDispatcher:
    return DueDispatcher(
        made(aws, clock), Mailbox(aws.dynamodb, MAILBOX), ledger, aws.sqs, aws.urls["mail"], clock
    )


def waiting(aws: Aws, ledger: Ledger, **changes: Any) -> None:
    """A message that dispatch has scheduled."""
    given = item(send_at=iso(NOW), **changes)
    aws.put(MAILBOX, **given)
    ledger.schedule(mail(), NOW)


def test_a_message_whose_time_has_come_is_dispatched(due: DueDispatcher, aws: Aws, ledger: Ledger) -> None:
    waiting(aws, ledger, first_name="Vincent")
    assert failures(due.handle(sqs_event(KEYS))) == []
    assert [each["first_name"] for each in aws.bodies()] == ["Vincent"]


def test_what_eventbridge_could_not_send_is_dispatched_once_it_is_redriven(
    due: DueDispatcher, aws: Aws, ledger: Ledger
) -> None:
    waiting(aws, ledger, first_name="Vincent")
    wrapped = {"QueueUrl": "https://sqs/scheduled", "MessageBody": json.dumps(KEYS)}
    assert failures(due.handle(sqs_event(wrapped))) == []
    assert [each["first_name"] for each in aws.bodies()] == ["Vincent"]


def test_a_message_whose_time_was_moved_on_meanwhile_waits_again(
    due: DueDispatcher, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    waiting(aws, ledger)
    clock.advance(-3600)
    assert failures(due.handle(sqs_event(KEYS))) == []
    assert aws.receive() == []
    assert len(aws.scheduler.list_schedules(GroupName=GROUP)["Schedules"]) == 1
    assert aws.item()["status"] == "scheduled"


def test_an_item_that_is_gone_was_taken_back_and_is_cancelled(
    due: DueDispatcher, aws: Aws, ledger: Ledger, log: Log
) -> None:
    ledger.schedule(mail(), NOW)
    assert failures(due.handle(sqs_event(KEYS))) == []
    assert aws.item()["status"] == "cancelled"
    assert aws.item()["error"]["message"] == "the item was deleted from the mailbox before its send_at"
    assert [(line["message"], line["id"], line["event_type"]) for line in log()] == [
        ("cancelled", "m-1", "mail")
    ]


@pytest.mark.parametrize("late", [0, 3599])
def test_an_item_that_is_gone_when_its_time_comes_was_taken_back(
    due: DueDispatcher, aws: Aws, ledger: Ledger, clock: FakeClock, late: float
) -> None:
    ledger.schedule(mail(), NOW)
    clock.advance(late)
    assert failures(due.handle(sqs_event(KEYS))) == []
    assert aws.item()["status"] == "cancelled"


def test_an_item_that_is_gone_when_it_is_read_back_too_late_is_failed_and_not_its_producers_doing(
    due: DueDispatcher, aws: Aws, ledger: Ledger, clock: FakeClock, log: Log
) -> None:
    ledger.schedule(mail(ttl=int(NOW + 3600)), NOW)
    clock.advance(2 * 86_400)
    assert failures(due.handle(sqs_event(KEYS))) == []
    found = aws.item()
    assert (found["status"], found["error"]["code"]) == ("failed", "content_gone")
    assert found["error"]["message"] == (
        "the item was gone from the mailbox when it was read back, more than 1 hour after its send_at: its "
        "ttl was over, or its producer deleted it; put it under a new id, unless it was taken back"
    )
    assert found["failed_on"] == "2026-11-23#mail"
    assert [line["message"] for line in log()] == ["its content is gone"]


def test_a_message_that_expired_while_it_waited_is_failed_with_its_reason(
    due: DueDispatcher, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    waiting(aws, ledger, expires_at=iso(NOW + 60))
    clock.advance(61)
    assert failures(due.handle(sqs_event(KEYS))) == []
    assert aws.item()["status"] == "failed"
    assert aws.item()["error"]["message"].startswith("expires_at: ")


@pytest.mark.parametrize(
    "body",
    [
        *("no", "[]", "{}", '{"id": "m-1"}', '{"id": 5, "event_type": "mail"}'),
        pytest.param(json.dumps({**KEYS, "id": "x" * 2049}), id="a key that no table can have"),
    ],
)
def test_a_body_that_is_no_key_comes_back_and_stops_nothing_else(
    due: DueDispatcher, aws: Aws, ledger: Ledger, body: str
) -> None:
    waiting(aws, ledger)
    assert failures(due.handle(sqs_event(body, KEYS))) == ["r-0"]
    assert len(aws.receive()) == 1


def test_what_sqs_does_not_take_comes_back_by_its_own_record(
    aws: Aws, clock: FakeClock, ledger: Ledger
) -> None:
    aws.put(MAILBOX, **item(id="a"))
    aws.put(MAILBOX, **item(id="b", lane="bulk"))
    client = Meddler(aws.sqs, send_message_batch=failing(*[client_error("ServiceUnavailable")] * 2))
    due = DueDispatcher(
        made(aws, clock, sqs=client), Mailbox(aws.dynamodb, MAILBOX), ledger, aws.sqs, aws.urls["mail"], clock
    )
    keys = [{"id": each, "event_type": "mail"} for each in ("a", "b")]
    assert failures(due.handle(sqs_event(*keys))) == ["r-0"]
    assert [each["id"] for each in aws.bodies("mail-bulk")] == ["b"]


def test_a_key_delivered_twice_in_one_batch_is_harmless(due: DueDispatcher, aws: Aws, ledger: Ledger) -> None:
    waiting(aws, ledger)
    assert failures(due.handle(sqs_event(KEYS, KEYS))) == []
    assert {each["id"] for each in aws.bodies()} == {"m-1"}
