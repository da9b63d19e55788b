"""Release: each minute one invocation looks at all lists of waiting messages, and starts a round for each
part of the work that is not empty."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.sms.contract import Sms
from mailroom.dispatch.release import REMOVED_SECONDS
from mailroom.ledger.items import PAUSED, RUN_UNKNOWN
from mailroom.ledger.waits import DAY_USED_UP, OUTSIDE_WINDOW, SHARDS
from mailroom.message.message import Message, parse
from tests.support.unit.dispatching import Log
from tests.support.unit.events import plenty
from tests.support.unit.fakes import client_error, failing
from tests.support.unit.releasing import Waiting
from tests.support.unit.shared import NOW, mail

Timed = Callable[[], dict[str, list[float]]]
MINUTE, HOUR = 60, 3600
IDS = tuple("abcdefghijklmnopqrstuvwxyz")
"""Ids of messages in all shards."""
LINE = {"line": "mail"}


@pytest.fixture(autouse=True)
def _after_the_full_hour(waiting: Waiting) -> None:
    """Set a minute in which the lists of removed channels are not read, and the names of the channels are
    stored."""
    waiting.clock.advance(MINUTE)
    waiting.release()._removed_channels()
    waiting.meddle()


def shards(events: list[dict[str, Any]]) -> list[int]:
    return [event["shard"] for event in events if "shard" in event]


def bulk_text() -> Message:
    item = {"id": "t-1", "event_type": "sms", "to": "+16175551234", "text": "Hi", "lane": "bulk"}
    return parse(item, {"sms": Sms})


def once_with_sms(waiting: Waiting) -> None:
    """Let the stage have had another channel, for one minute."""
    waiting.channels = ("mail", "sms")
    waiting.release_minute()
    waiting.channels = ("mail",)


# Which rounds are started


def test_in_a_minute_without_work_release_only_reads_and_reports_a_lateness_of_zero(
    waiting: Waiting, timed: Timed
) -> None:
    waiting.hold("m-1", OUTSIDE_WINDOW, NOW + HOUR)
    assert waiting.release_minute() == []
    assert {*waiting.dynamodb.names()} == {"query", "get_item"}
    assert timed()["ReleaseLate"] == [0]


def test_in_a_minute_without_work_release_reads_each_list_of_waiting_messages_once(waiting: Waiting) -> None:
    waiting.release_minute()
    calls = [call for name, call in waiting.dynamodb.calls if name == "query"]
    lists = [call["ExpressionAttributeValues"][":list"]["S"] for call in calls]
    assert len({*lists}) == len(lists) == 5 * SHARDS
    assert waiting.dynamodb.names().count("get_item") == 2  # of the budget and of the channels' names


@pytest.mark.parametrize("lines_up", [False, True])
def test_a_round_is_started_for_the_shard_of_a_due_message(waiting: Waiting, *, lines_up: bool) -> None:
    waiting.hold("m-1", OUTSIDE_WINDOW, NOW, lines_up=lines_up)
    (event,) = waiting.release_minute()
    assert event.keys() == {"shard"}
    assert len(waiting.sent) == (0 if lines_up else 1)
    assert waiting.release_minute() == ([LINE] if lines_up else [])
    assert len(waiting.sent) == 1


def test_release_starts_a_round_for_each_shard_with_a_due_message(waiting: Waiting) -> None:
    for id_ in IDS:
        waiting.hold(id_, OUTSIDE_WINDOW, NOW)
    assert shards(waiting.release_minute()) == [*range(SHARDS)]
    assert len(waiting.sent) == len(IDS)
    assert waiting.release_minute() == []


@pytest.mark.parametrize("reason", [DAY_USED_UP, PAUSED, RUN_UNKNOWN])
def test_a_round_is_started_for_the_channel_of_a_message_that_waits_for_the_daily_limit_or_its_run(
    waiting: Waiting, reason: str
) -> None:
    waiting.hold(mail(lane="bulk"), reason, NOW, lines_up=True)
    assert waiting.release_minute() == [LINE]


def test_a_round_is_started_for_a_channel_whose_waiting_line_is_empty_but_open(waiting: Waiting) -> None:
    waiting.budget.join(NOW)
    assert waiting.release_minute() == [LINE]
    assert waiting.release_minute() == []


def test_a_round_that_runs_a_minute_late_still_fails_the_messages_of_a_removed_channel(
    waiting: Waiting,
) -> None:
    once_with_sms(waiting)
    waiting.hold(bulk_text(), DAY_USED_UP, NOW, lines_up=True)
    waiting.clock.advance(REMOVED_SECONDS + HOUR - 1)
    waiting.release().handle({"parts": "all"}, plenty)
    (event,) = waiting.started
    waiting.clock.advance(MINUTE)
    waiting.release().handle(event, plenty)
    assert waiting.aws.item("t-1", "sms")["status"] == "failed"


def test_release_reads_at_most_one_row_of_each_list_to_decide_which_rounds_to_start(waiting: Waiting) -> None:
    for id_ in IDS:
        waiting.hold(id_, OUTSIDE_WINDOW, NOW)
    waiting.release().handle({"parts": "all"}, plenty)
    assert {call["Limit"] for name, call in waiting.dynamodb.calls if name == "query"} == {1}


@pytest.mark.parametrize("event", [{"shard": 0}, {"removed": "sms", "shard": 0}, LINE])
def test_a_round_of_release_does_not_invoke_another_function(waiting: Waiting, event: dict[str, Any]) -> None:
    for id_ in IDS:
        waiting.hold(id_, OUTSIDE_WINDOW, NOW)
    waiting.line_up("1", "2")
    waiting.hold(bulk_text(), DAY_USED_UP, NOW, lines_up=True)
    waiting.release().handle(event, plenty)
    assert waiting.started == []


# The lateness


@pytest.mark.parametrize("lines_up", [False, True])
def test_the_reported_lateness_is_that_of_the_oldest_due_message_of_all_shards(
    waiting: Waiting, timed: Timed, *, lines_up: bool
) -> None:
    for id_ in IDS:
        waiting.hold(id_, OUTSIDE_WINDOW, NOW + 30, lines_up=lines_up)
    waiting.hold("m-1", OUTSIDE_WINDOW, NOW, lines_up=lines_up)
    waiting.clock.advance(30)
    waiting.release_minute()
    assert timed()["ReleaseLate"] == [90_000]


def test_the_reported_lateness_is_zero_if_release_queues_a_message_ahead_of_its_time(
    waiting: Waiting, timed: Timed
) -> None:
    waiting.hold("m-1", OUTSIDE_WINDOW, NOW + 2 * MINUTE)
    assert len(waiting.release_minute()) == 1
    assert timed()["ReleaseLate"] == [0]


def test_the_reported_lateness_grows_while_rounds_of_release_fail(waiting: Waiting, timed: Timed) -> None:
    waiting.hold("m-1", OUTSIDE_WINDOW, NOW)
    for _ in range(3):
        waiting.release().handle({"parts": "all"}, plenty)
        waiting.clock.advance(MINUTE)
    assert timed()["ReleaseLate"] == [60_000, 120_000, 180_000]


# Trouble


def test_a_round_that_cannot_be_started_fails_the_invocation_and_is_started_in_the_next_minute(
    waiting: Waiting, timed: Timed, log: Log
) -> None:
    for id_ in IDS:
        waiting.hold(id_, OUTSIDE_WINDOW, NOW)
    throttled = failing(client_error("TooManyRequestsException", status=429))
    waiting.invoke = lambda **arguments: throttled(waiting._record, **arguments)
    with pytest.raises(RuntimeError, match="not all rounds were started"):
        waiting.release_minute()
    assert shards(waiting.started) == [*range(1, SHARDS)]
    assert "ReleaseLate" not in timed(), "the alarm rings without values"
    assert [line["part"] for line in log() if line["level"] == "ERROR"] == ["due#0"]
    assert shards(waiting.release_minute()) == [*range(SHARDS)]
    assert len(waiting.sent) == len(IDS)


def test_release_starts_the_rounds_of_other_parts_even_if_one_list_of_messages_cannot_be_read(
    waiting: Waiting, timed: Timed
) -> None:
    waiting.hold("m-1", OUTSIDE_WINDOW, NOW)
    waiting.line_up("a")

    def refusing(real: Callable[..., Any], **arguments: Any) -> Any:
        if arguments["ExpressionAttributeValues"][":list"]["S"] == "due#0":
            raise client_error("ThrottlingException", status=400)
        return real(**arguments)

    waiting.meddle(query=refusing)
    with pytest.raises(Exception, match="ThrottlingException"):
        waiting.release().handle({"parts": "all"}, plenty)
    (shard,) = {*shards(waiting.started)} - {0}
    assert waiting.started == [
        {"shard": 0},
        {"shard": shard},
        LINE,
    ]
    assert "ReleaseLate" not in timed()


def test_an_event_that_invokes_a_release_round_twice_queues_each_message_once(waiting: Waiting) -> None:
    for id_ in IDS:
        waiting.hold(id_, OUTSIDE_WINDOW, NOW)
    events = waiting.release_minute()
    for event in events:
        waiting.release().handle(event, plenty)
    assert len(waiting.sent) == len(IDS)
