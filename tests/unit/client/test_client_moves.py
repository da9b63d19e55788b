"""A send_at that is moved by replacing the item: when that is heeded, and when it is not."""

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
    """A message that was sent and dispatched; then its item is replaced."""

    def __init__(self, aws: Aws, clock: FakeClock, ledger: Ledger) -> None:
        self._aws, self._clock = aws, clock
        self._mailroom = Mailroom("test")
        self._dispatcher = made(aws, clock)
        mailbox = Mailbox(aws.dynamodb, MAILBOX)
        self._due = DueDispatcher(self._dispatcher, mailbox, ledger, aws.sqs, aws.urls["mail"], clock)

    def sent(self, seconds: float) -> None:
        new = item(send_at=at(seconds), text="old")
        assert self._mailroom.send(new).state == "accepted"
        assert self._dispatcher.dispatch(numbered(new)) == set()

    def moved(self, seconds: float) -> None:
        assert self._mailroom.send(item(send_at=at(seconds), text="new"), if_new=False).ok

    def fired(self, seconds: float) -> list[str]:
        """The schedule's time comes; the texts that are in the queue then."""
        self._clock.now = NOW + seconds
        assert failures(self._due.handle(sqs_event(KEYS))) == []
        return [each["text"] for each in self._aws.bodies()]

    def times(self) -> list[str]:
        """When the schedules fire that there are."""
        scheduler = self._aws.scheduler
        names = [each["Name"] for each in scheduler.list_schedules(GroupName=GROUP)["Schedules"]]
        found = [scheduler.get_schedule(Name=name, GroupName=GROUP) for name in names]
        return sorted(each["ScheduleExpression"] for each in found)


@pytest.fixture
def waiting(aws: Aws, clock: FakeClock, ledger: Ledger) -> Waiting:
    return Waiting(aws, clock, ledger)


def schedule(seconds: float) -> str:
    return f"at({iso(NOW + seconds)[:19]})"


def test_a_later_time_is_heeded_when_the_old_one_comes(waiting: Waiting, aws: Aws) -> None:
    waiting.sent(HOUR)
    waiting.moved(2 * HOUR)
    assert waiting.times() == [schedule(HOUR)]
    assert waiting.fired(HOUR) == []
    assert waiting.times() == [schedule(HOUR), schedule(2 * HOUR)]  # the first is gone, once it has fired
    assert aws.item()["scheduledFor"] == at(2 * HOUR)
    assert waiting.fired(2 * HOUR) == ["new"]


def test_an_earlier_time_is_not_heeded_and_the_old_one_counts(waiting: Waiting) -> None:
    waiting.sent(2 * HOUR)
    waiting.moved(HOUR)
    assert waiting.times() == [schedule(2 * HOUR)]
    assert waiting.fired(2 * HOUR) == ["new"]


@pytest.mark.parametrize("seconds", [0, 600, 900])
def test_what_waits_for_fifteen_minutes_or_less_goes_as_it_was(
    aws: Aws, clock: FakeClock, waiting: Waiting, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    queued: list[Any] = []

    def send(**arguments: Any) -> Any:
        queued.extend(arguments["Entries"])
        return {"Successful": [{"Id": each["Id"]} for each in arguments["Entries"]]}

    monkeypatch.setattr(aws.sqs, "send_message_batch", send)
    waiting.sent(seconds)
    waiting.moved(2 * HOUR)
    assert waiting.times() == []
    (entry,) = queued
    assert entry.get("DelaySeconds", 0) == seconds
    assert '"text":"old"' in entry["MessageBody"]


@pytest.mark.parametrize("seconds", [HOUR, 600])
def test_dispatch_hears_of_no_replacement(load: Load, aws: Aws, waiting: Waiting, seconds: float) -> None:
    waiting.sent(HOUR)
    waiting.moved(seconds)
    change = stream_event(image(**aws.item(table=MAILBOX)), name="MODIFY")
    assert load("dispatch")(change, lambda_context()) == {"batchItemFailures": []}
    assert (waiting.times(), aws.receive()) == ([schedule(HOUR)], [])
