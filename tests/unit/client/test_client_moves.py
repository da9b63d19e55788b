"""A replaced item with another send_at: a later time counts, an earlier one does not."""

from typing import Any

import pytest

from mailroom.client import Mailroom
from mailroom.dispatch.release import Lease, Release
from mailroom.ledger.contents import Contents
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.run_states import RunStates
from mailroom.ledger.waits import AHEAD_SECONDS, SHARDS
from tests.support.unit.dispatching import dispatcher_of, iso_after, numbered
from tests.support.unit.events import lambda_context, plenty, stream_event
from tests.support.unit.fakes import never
from tests.support.unit.functions import Load
from tests.support.unit.shared import BUDGETS, CONTENTS, MAILBOX, NOW, Aws, FakeClock, image, item
from tests.support.unit.waiting import waits_of

HOUR = 3600


class MovedMessage:
    """A message that was sent and dispatched, and whose item is then replaced."""

    def __init__(self, aws: Aws, clock: FakeClock, ledger: Ledger) -> None:
        self._aws, self._clock = aws, clock
        self._mailroom = Mailroom("test")
        self._dispatcher = dispatcher_of(aws, clock)
        self._waits = waits_of(ledger)
        self._release = Release(
            self._dispatcher,
            self._waits,
            Contents(aws.dynamodb, CONTENTS),
            aws.dynamodb,
            MAILBOX,
            ledger,
            Lease(aws.dynamodb, BUDGETS, 60, clock),
            lines={},
            runs=RunStates(aws.dynamodb, "", clock),
            invoke=never,
            clock=clock,
        )

    def send(self, seconds: float) -> None:
        new = item(send_at=iso_after(seconds), text="old")
        assert self._mailroom.send(new).state == "accepted"
        assert self._dispatcher.dispatch(numbered(new)) == set()

    def move(self, seconds: float) -> None:
        assert self._mailroom.send(item(send_at=iso_after(seconds), text="new"), if_new=False).ok

    def release(self, seconds: float) -> list[str]:
        """Move the clock and let a round release what is due. Returns the texts in the queue."""
        self._clock.now = NOW + seconds
        for shard in range(SHARDS):
            self._release.handle({"shard": shard}, plenty)
        return [body["text"] for body in self._aws.bodies()]

    def times(self) -> list[float]:
        """Return the times of the waits, in seconds from the start."""
        rows = [row for shard in range(SHARDS) for row in self._waits.due(shard, NOW + 10 * HOUR)]
        return [row.at - NOW for row in rows]


@pytest.fixture
def moved_messages(aws: Aws, clock: FakeClock, ledger: Ledger) -> MovedMessage:
    return MovedMessage(aws, clock, ledger)


def test_a_message_moved_to_a_later_send_at_waits_again_when_its_old_wait_is_over(
    moved_messages: MovedMessage, aws: Aws
) -> None:
    moved_messages.send(HOUR)
    moved_messages.move(2 * HOUR)
    assert moved_messages.times() == [HOUR]
    assert moved_messages.release(HOUR) == []
    assert moved_messages.times() == [2 * HOUR]
    assert aws.item()["scheduledFor"] == iso_after(2 * HOUR)
    assert moved_messages.release(2 * HOUR) == ["new"]


def test_a_message_moved_to_an_earlier_send_at_is_sent_at_the_old_time(moved_messages: MovedMessage) -> None:
    moved_messages.send(2 * HOUR)
    moved_messages.move(HOUR)
    assert moved_messages.release(HOUR) == []
    assert moved_messages.release(2 * HOUR) == ["new"]


@pytest.mark.parametrize("seconds", [0, 60, AHEAD_SECONDS])
def test_the_replacement_of_a_mailbox_item_does_not_change_a_message_already_in_its_queue(
    aws: Aws, clock: FakeClock, moved_messages: MovedMessage, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    queued: list[Any] = []

    def send(**arguments: Any) -> Any:
        queued.extend(arguments["Entries"])
        return {"Successful": [{"Id": entry["Id"]} for entry in arguments["Entries"]]}

    monkeypatch.setattr(aws.sqs, "send_message_batch", send)
    moved_messages.send(seconds)
    moved_messages.move(2 * HOUR)
    assert moved_messages.times() == []
    (entry,) = queued
    assert entry.get("DelaySeconds", 0) == seconds
    assert '"text":"old"' in entry["MessageBody"]


@pytest.mark.parametrize("seconds", [HOUR, 600])
def test_dispatch_ignores_the_replacement_of_a_mailbox_item(
    load: Load, aws: Aws, moved_messages: MovedMessage, seconds: float
) -> None:
    moved_messages.send(HOUR)
    moved_messages.move(seconds)
    change = stream_event(image(**aws.item(table=MAILBOX)), name="MODIFY")
    assert load("dispatch")(change, lambda_context()) == {"batchItemFailures": []}
    assert (moved_messages.times(), aws.receive()) == ([HOUR], [])
