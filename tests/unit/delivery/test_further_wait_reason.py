"""A further reason to wait: a class, a row in the sender's reasons, and a line in `release`."""

from collections.abc import Mapping, Sequence

import pytest

from mailroom.delivery.waiting.reason import Due, Entry, WaitReason
from mailroom.dispatch import release
from mailroom.message.message import Key
from mailroom.message.outcome import Sent
from tests.support.unit.post import Counted, Make
from tests.support.unit.releasing import Waiting
from tests.support.unit.shared import NOW, FakeClock, item

OVER = NOW + 86_400
"""Time in epoch seconds at which the holiday is over."""


class Holiday(WaitReason):
    """Messages of the topic `news` are not sent on a holiday."""

    name, metric = "holiday", "WaitsForHoliday"

    def waits(self, entries: Sequence[Entry], moment: float) -> Mapping[Key, Due]:
        of_topic = (entry.record.key for entry in entries if entry.message.topic == "news")
        return dict.fromkeys(of_topic, OVER) if moment < OVER else {}


def test_the_function_release_has_a_delay_rule_for_each_reason_to_wait_of_a_bulk_lane(
    make_post: Make,
) -> None:
    assert {reason.name for reason in make_post(bulk=True).delivery.reasons} == release.DELAYED_SINCE.keys()


def test_an_added_reason_to_wait_holds_messages_until_release_queues_them_at_the_end_of_the_wait(
    make_post: Make, waiting: Waiting, clock: FakeClock, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = make_post(Sent("p-1"), Sent("p-2"))
    worker.delivery.reasons = [Holiday(), *worker.delivery.reasons]
    monkeypatch.setitem(release.DELAYED_SINCE, Holiday.name, lambda row, _moment: row.at)
    assert worker.handle(item(id="m-1", topic="news"), item(id="m-2")) == {}
    assert (worker.submitted, counted()) == (["m-2"], {"WaitsForHoliday": 1, "Sent": 1})
    clock.advance(86_000)
    waiting.release_due()
    assert waiting.sent == []
    clock.advance(400)
    waiting.release_due()
    (entry,) = waiting.sent
    assert entry["MessageAttributes"]["due_at"]["StringValue"] == str(int(OVER))
    assert worker.handle(entry["MessageBody"]) == {}
    assert worker.submitted == ["m-2", "m-1"]
