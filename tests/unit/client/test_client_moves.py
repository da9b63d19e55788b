"""A replaced item with another send_at: a later time counts, an earlier one does not."""

from typing import Any

import pytest

from mailroom.client import Mailroom
from mailroom.clock import iso
from mailroom.dispatch.due import DueDispatcher, Mailbox
from mailroom.ledger.ledger import Ledger
from tests.support.unit.dispatching import at, made, numbered
from tests.support.unit.events import failures, lambda_context, sqs_event, stream_event
from tests.support.unit.functions import Load
from tests.support.unit.shared import GROUP, MAILBOX, NOW, Aws, FakeClock, image, item

KEYS = {"id": "m-1", "event_type": "mail"}
HOUR = 3600


class Waiting:
    """A message that was sent and dispatched, and whose item is then replaced."""

    def __init__(self, aws: Aws, clock: FakeClock, ledger: Ledger) -> None:
        self._aws, self._clock = aws, clock
        self._mailroom = Mailroom("test")
        self._dispatcher = made(aws, clock)
        mailbox = Mailbox(aws.dynamodb, MAILBOX)
        self._due = DueDispatcher(self._dispatcher, mailbox, ledger, aws.sqs, aws.urls["mail"], clock)

    def send(self, seconds: float) -> None:
        new = item(send_at=at(seconds), text="old")
        assert self._mailroom.send(new).state == "accepted"
        assert self._dispatcher.dispatch(numbered(new)) == set()

    def move(self, seconds: float) -> None:
        assert self._mailroom.send(item(send_at=at(seconds), text="new"), if_new=False).ok

    def fire(self, seconds: float) -> list[str]:
        """Move the clock to the time of the schedule, and return the texts in the queue."""
        self._clock.now = NOW + seconds
        assert failures(self._due.handle(sqs_event(KEYS))) == []
        return [body["text"] for body in self._aws.bodies()]

    def times(self) -> list[str]:
        """Return the times of the existing schedules."""
        scheduler = self._aws.scheduler
        names = [entry["Name"] for entry in scheduler.list_schedules(GroupName=GROUP)["Schedules"]]
        schedules = [scheduler.get_schedule(Name=name, GroupName=GROUP) for name in names]
        return sorted(schedule["ScheduleExpression"] for schedule in schedules)


@pytest.fixture
def waiting(aws: Aws, clock: FakeClock, ledger: Ledger) -> Waiting:
    return Waiting(aws, clock, ledger)


def schedule(seconds: float) -> str:
    return f"at({iso(NOW + seconds)[:19]})"


def test_a_message_moved_to_a_later_send_at_is_rescheduled_when_its_old_schedule_fires(
    waiting: Waiting, aws: Aws
) -> None:
    waiting.send(HOUR)
    waiting.move(2 * HOUR)
    assert waiting.times() == [schedule(HOUR)]
    assert waiting.fire(HOUR) == []
    assert waiting.times() == [schedule(HOUR), schedule(2 * HOUR)]  # a schedule is deleted after it has fired
    assert aws.item()["scheduledFor"] == at(2 * HOUR)
    assert waiting.fire(2 * HOUR) == ["new"]


def test_a_message_moved_to_an_earlier_send_at_is_sent_at_the_old_time(waiting: Waiting) -> None:
    waiting.send(2 * HOUR)
    waiting.move(HOUR)
    assert waiting.times() == [schedule(2 * HOUR)]
    assert waiting.fire(2 * HOUR) == ["new"]


@pytest.mark.parametrize("seconds", [0, 600, 900])
def test_a_message_already_in_its_queue_is_sent_with_the_old_content_and_time(
    aws: Aws, clock: FakeClock, waiting: Waiting, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    queued: list[Any] = []

    def send(**arguments: Any) -> Any:
        queued.extend(arguments["Entries"])
        return {"Successful": [{"Id": entry["Id"]} for entry in arguments["Entries"]]}

    monkeypatch.setattr(aws.sqs, "send_message_batch", send)
    waiting.send(seconds)
    waiting.move(2 * HOUR)
    assert waiting.times() == []
    (entry,) = queued
    assert entry.get("DelaySeconds", 0) == seconds
    assert '"text":"old"' in entry["MessageBody"]


@pytest.mark.parametrize("seconds", [HOUR, 600])
def test_dispatch_ignores_the_replacement_of_a_mailbox_item(
    load: Load, aws: Aws, waiting: Waiting, seconds: float
) -> None:
    waiting.send(HOUR)
    waiting.move(seconds)
    change = stream_event(image(**aws.item(table=MAILBOX)), name="MODIFY")
    assert load("dispatch")(change, lambda_context()) == {"batchItemFailures": []}
    assert (waiting.times(), aws.receive()) == ([schedule(HOUR)], [])
