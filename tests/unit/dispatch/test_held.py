"""Messages that wait with their content until their slot: nothing is read back from the mailbox."""

import json
from typing import Any

import pytest

from mailroom.clock import iso
from mailroom.dispatch.due import DueDispatcher, Mailbox
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Held
from tests.support.unit.dispatching import made
from tests.support.unit.events import failures, sqs_event
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.shared import GROUP, LEDGER, MAILBOX, NOW, TTL, Aws, FakeClock, Item, claimed, item

LATER = NOW + 20 * 3600


def due_dispatcher(aws: Aws, clock: FakeClock, **clients: Any) -> DueDispatcher:
    ledger = Ledger(aws.dynamodb, LEDGER, lease=0, ttl=TTL, clock=clock)
    reads: Any = Meddler(aws.dynamodb, batch_get_item=failing(AssertionError("is read back")))
    mailbox = Mailbox(reads, MAILBOX)
    dispatcher = made(aws, clock, **clients)
    return DueDispatcher(dispatcher, mailbox, ledger, aws.sqs, aws.urls["scheduled"], clock)


@pytest.fixture
def due(aws: Aws, clock: FakeClock) -> DueDispatcher:
    return due_dispatcher(aws, clock)


def bulk(**changes: Any) -> Item:
    return item(lane="bulk", **changes)


def schedules(aws: Aws) -> list[Any]:
    names = [each["Name"] for each in aws.scheduler.list_schedules(GroupName=GROUP)["Schedules"]]
    return [aws.scheduler.get_schedule(GroupName=GROUP, Name=name) for name in names]


def test_a_slot_that_is_far_is_a_schedule_with_the_message_in_it(due: DueDispatcher, aws: Aws) -> None:
    body = Held(bulk(first_name="Ada"), LATER, LATER, in_line=True).body
    assert failures(due.handle(sqs_event(body))) == []
    (schedule,) = schedules(aws)
    assert schedule["ScheduleExpression"] == "at(2026-11-22T05:00:00)"
    assert schedule["Target"]["Input"] == body
    found = aws.item()
    assert (found["status"], found["scheduledFor"]) == ("scheduled", iso(LATER))
    assert found["trouble"]["message"] == "it waits for the day's quota"


def test_at_its_slot_it_goes_into_its_lane_and_says_that_it_has_waited(
    due: DueDispatcher, aws: Aws, clock: FakeClock
) -> None:
    clock.now = LATER
    due.handle(sqs_event(Held(bulk(first_name="Ada"), LATER, LATER, in_line=True).body))
    (message,) = aws.receive("mail-bulk")
    assert json.loads(message["Body"])["first_name"] == "Ada"
    said = {name: each["StringValue"] for name, each in message["MessageAttributes"].items()}
    assert said == {"channel": "mail", "type": "plaintext", "in_line": "true", "put_at": str(int(LATER))}


def test_a_slot_within_a_quarter_of_an_hour_is_a_delay_of_the_lanes_queue(aws: Aws, clock: FakeClock) -> None:
    sqs = Meddler(aws.sqs)
    due_dispatcher(aws, clock, sqs=sqs).handle(sqs_event(Held(bulk(), NOW + 900, NOW).body))
    ((_, call),) = sqs.calls
    assert [each["DelaySeconds"] for each in call["Entries"]] == [900]
    assert aws.item()["status"] == "scheduled"


@pytest.mark.parametrize("text", ["x" * 300_000, "made at <aws.scheduler.scheduled-time>"])
def test_what_a_schedule_cannot_send_as_it_is_stays_in_the_queue_until_its_slot(
    aws: Aws, clock: FakeClock, text: str
) -> None:
    sqs, body = Meddler(aws.sqs), Held(bulk(text=text), LATER, LATER).body
    due_dispatcher(aws, clock, sqs=sqs).handle(sqs_event(body))
    ((_, call),) = sqs.calls
    assert call["QueueUrl"] == aws.urls["scheduled"]
    assert [(each["MessageBody"], each["DelaySeconds"]) for each in call["Entries"]] == [(body, 900)]
    assert schedules(aws) == []


def test_what_was_a_dead_letter_of_a_schedule_is_taken_as_well(
    due: DueDispatcher, aws: Aws, clock: FakeClock
) -> None:
    clock.now = LATER
    wrapped = {"QueueUrl": "https://sqs/scheduled", "MessageBody": Held(bulk(), LATER).body}
    assert failures(due.handle(sqs_event(wrapped))) == []
    assert len(aws.receive("mail-bulk")) == 1


def test_an_attempt_of_an_operator_waits_as_any_other(due: DueDispatcher, aws: Aws, clock: FakeClock) -> None:
    clock.now = LATER
    assert failures(due.handle(sqs_event(Held(bulk(attempt=2), LATER).body))) == []
    assert [each["attempt"] for each in aws.bodies("mail-bulk")] == [2]


def test_what_has_expired_meanwhile_is_left_to_its_sender_to_end(
    due: DueDispatcher, aws: Aws, clock: FakeClock
) -> None:
    clock.now = LATER
    due.handle(sqs_event(Held(bulk(expires_at=iso(LATER - 60)), LATER).body))
    assert len(aws.receive("mail-bulk")) == 1
    assert aws.item() == {}


def test_a_message_that_a_sender_has_claimed_keeps_its_status(
    due: DueDispatcher, aws: Aws, ledger: Ledger
) -> None:
    claimed(ledger)
    assert failures(due.handle(sqs_event(Held(bulk(), LATER).body))) == []
    assert (aws.item()["status"], len(schedules(aws))) == ("sending", 1)


def test_a_schedule_that_cannot_be_made_sends_its_record_back_and_no_other(
    aws: Aws, clock: FakeClock
) -> None:
    down = Meddler(aws.scheduler, create_schedule=failing(client_error("ThrottlingException")))
    bodies = [Held(bulk(id=id_), LATER).body for id_ in ("a", "b")]
    assert failures(due_dispatcher(aws, clock, scheduler=down).handle(sqs_event(*bodies))) == ["r-0"]
    assert len(schedules(aws)) == 1


def test_an_item_that_no_contract_takes_any_more_is_failed_with_its_reason(
    due: DueDispatcher, aws: Aws
) -> None:
    assert failures(due.handle(sqs_event(Held(bulk(to="nobody"), LATER).body))) == []
    assert (aws.item()["status"], aws.item()["error"]["field"]) == ("failed", "to")


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "because"},
        {"due": "soon"},
        {"due": None},
        {"item": "m-1"},
        {"item": {"id": "m-2", "event_type": "mail"}},
        {"item": {}},
    ],
)
def test_a_body_that_holds_no_message_comes_back_and_stops_nothing_else(
    due: DueDispatcher, aws: Aws, changes: Item
) -> None:
    bad = {**json.loads(Held(bulk(), LATER).body), **changes}
    assert failures(due.handle(sqs_event(bad, Held(bulk(), LATER).body))) == ["r-0"]
    assert len(schedules(aws)) == 1


def test_what_waits_for_its_window_says_so(due: DueDispatcher, aws: Aws) -> None:
    due.handle(sqs_event(Held(bulk(), LATER, LATER, code="outside_window").body))
    assert aws.item()["trouble"] == {
        "code": "outside_window",
        "message": "it waits until its window opens",
    }
