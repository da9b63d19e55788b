"""Release: what is due is handed over once, and whoever waits ends, waits on or is sent, whatever happens
meanwhile."""

import json
from collections.abc import Callable
from itertools import islice
from typing import Any
from zlib import crc32

import pytest

from mailroom.channels.sms.contract import Sms
from mailroom.clock import iso
from mailroom.dispatch.release import REMOVED_SECONDS
from mailroom.ledger.contents import Held
from mailroom.ledger.items import PAUSED, RUN_UNKNOWN
from mailroom.ledger.waits import DAY_USED_UP, OUTSIDE_WINDOW, PROVIDER_REFUSES, SEND_AT, SHARDS
from mailroom.message.message import Key, parse
from tests.support.unit.dispatching import Counted, Log
from tests.support.unit.events import plenty
from tests.support.unit.fakes import client_error
from tests.support.unit.releasing import ROUND_SECONDS, Waiting
from tests.support.unit.shared import BUDGETS, CONTENTS, KEY, MAILBOX, NOW, claimed, image, item, mail


def schedule(waiting: Waiting, id_: str = "m-1", *, due: float = NOW, **changes: Any) -> None:
    """Put an item with a `send_at`, as `dispatch` lets it wait."""
    waiting.aws.put(MAILBOX, **item(id=id_, send_at=iso(due), **changes))
    waiting.hold(id_, SEND_AT, due)


def attributes(entry: Any) -> dict[str, str]:
    return {name: value["StringValue"] for name, value in entry["MessageAttributes"].items()}


# Due messages.


def test_a_message_is_read_back_from_the_mailbox_at_its_send_at(waiting: Waiting) -> None:
    schedule(waiting, first_name="Vincent")
    waiting.release_due()
    (entry,) = waiting.sent
    assert json.loads(entry["MessageBody"])["first_name"] == "Vincent"
    assert attributes(entry)["put_at"] == str(int(NOW))
    assert waiting.marked == []


@pytest.mark.parametrize(("ahead", "delay"), [(120, 120), (59.5, 60), (0, None), (-60, None)])
def test_a_message_is_queued_within_two_minutes_of_its_send_at_with_a_delay_to_the_second(
    waiting: Waiting, ahead: float, delay: int | None
) -> None:
    schedule(waiting, due=NOW + ahead)
    waiting.release_due()
    assert [entry.get("DelaySeconds") for entry in waiting.sent] == [delay]


def test_a_message_with_a_send_at_over_two_minutes_ahead_keeps_waiting(waiting: Waiting) -> None:
    schedule(waiting, due=NOW + 121)
    waiting.release_due()
    assert (waiting.sent, waiting.marked) == ([], ["m-1"])


@pytest.mark.parametrize(
    ("reason", "lane", "queue"), [(OUTSIDE_WINDOW, "normal", "mail"), (PROVIDER_REFUSES, "bulk", "mail-bulk")]
)
def test_a_due_message_is_put_into_the_queue_of_its_lane_with_its_stored_content(
    waiting: Waiting, reason: str, lane: str, queue: str
) -> None:
    waiting.hold(mail(lane=lane, subject="For Ada"), reason, NOW + 30, put_at=NOW - 60)
    waiting.release_due()
    (call,) = [call for name, call in waiting.sqs.calls if name == "send_message_batch"]
    (entry,) = call["Entries"]
    assert (call["QueueUrl"], entry["DelaySeconds"]) == (waiting.aws.urls[queue], 30)
    assert json.loads(entry["MessageBody"])["subject"] == "For Ada"
    assert (waiting.marked, waiting.held) == ([], [])


@pytest.mark.parametrize(("reason", "since"), [(OUTSIDE_WINDOW, NOW + 30), (PROVIDER_REFUSES, NOW - 60)])
def test_the_due_at_of_a_released_message_is_the_opening_of_its_window_or_else_its_time_of_put(
    waiting: Waiting, reason: str, since: float
) -> None:
    waiting.hold("m-1", reason, NOW + 30, put_at=NOW - 60)
    waiting.release_due()
    expected = {"put_at": str(int(NOW - 60)), "due_at": str(int(since))}
    assert attributes(waiting.sent[0]) == {"channel": "mail", "type": "plaintext", **expected}


def test_a_message_whose_send_at_was_postponed_waits_again(waiting: Waiting) -> None:
    schedule(waiting)
    waiting.aws.put(MAILBOX, **item(send_at=iso(NOW + 3600)))
    waiting.release_due()
    assert (waiting.sent, waiting.marked) == ([], ["m-1"])
    assert (waiting.aws.item()["status"], waiting.aws.item()["scheduledFor"]) == (
        "scheduled",
        iso(NOW + 3600),
    )
    waiting.clock.advance(3600)
    waiting.release_due()
    assert len(waiting.sent) == 1


def test_a_message_that_expires_during_its_wait_fails_with_its_reason(waiting: Waiting) -> None:
    schedule(waiting, expires_at=iso(NOW + 60))
    waiting.clock.advance(61)
    waiting.release_due()
    assert waiting.aws.item()["status"] == "failed"
    assert waiting.aws.item()["error"]["message"].startswith("expires_at: ")
    assert waiting.marked == []


# Deleted messages.


@pytest.mark.parametrize("late", [0, 3600])
def test_a_message_whose_item_is_deleted_at_its_send_at_is_cancelled(
    waiting: Waiting, log: Log, late: float
) -> None:
    waiting.hold("m-1", SEND_AT, NOW)
    waiting.clock.advance(late)
    waiting.release_due()
    found = waiting.aws.item()
    assert (found["status"], waiting.sent, waiting.marked) == ("cancelled", [], [])
    assert found["error"]["message"] == "the item was deleted from the mailbox before its send_at"
    assert [(line["message"], line["id"], line["event_type"]) for line in log()] == [
        ("cancelled", "m-1", "mail")
    ]


def test_a_message_whose_item_is_missing_long_after_its_send_at_fails_as_content_gone(
    waiting: Waiting, log: Log
) -> None:
    waiting.hold("m-1", SEND_AT, NOW)
    waiting.clock.advance(2 * 86_400)
    waiting.release_due()
    found = waiting.aws.item()
    assert (found["status"], found["error"]["code"]) == ("failed", "content_gone")
    assert found["failed_as"].startswith("failed#")
    assert found["error"]["message"] == (
        "the item was missing in the mailbox when it was read more than 1 hour after send_at: it had "
        "expired, or its producer had deleted it; if it is still wanted, put it under a new id"
    )
    assert [line["message"] for line in log()] == ["the message cannot be released"]


def test_a_message_without_its_stored_content_fails_with_its_reason(waiting: Waiting) -> None:
    waiting.hold("m-1", OUTSIDE_WINDOW, NOW)
    waiting.contents.erase(KEY)
    waiting.release_due()
    found = waiting.aws.item()
    assert (found["status"], found["error"]["code"]) == ("failed", "content_gone")
    assert found["error"]["message"].startswith("its content was deleted before its wait ended")
    assert (waiting.sent, waiting.marked) == ([], [])


def test_a_message_whose_lane_was_removed_fails_with_its_reason(waiting: Waiting) -> None:
    waiting.lanes = "normal"
    waiting.hold(mail(lane="bulk"), OUTSIDE_WINDOW, NOW)
    waiting.hold("m-2", OUTSIDE_WINDOW, NOW)
    waiting.release_due()
    assert waiting.aws.item()["error"]["message"] == (
        "its lane 'bulk' of mail does not exist any more; put the message under a new id in another lane"
    )
    assert len(waiting.sent) == 1
    assert (waiting.marked, waiting.held) == ([], [])


def test_a_message_that_is_cancelled_during_its_wait_loses_its_wait_and_its_stored_content(
    waiting: Waiting,
) -> None:
    waiting.hold("m-1", OUTSIDE_WINDOW, NOW)
    assert waiting.ledger.cancel(KEY)
    before = waiting.aws.item()["ttl"]
    waiting.release_due()
    assert (waiting.sent, waiting.marked, waiting.held) == ([], [], [])
    assert (waiting.aws.item()["status"], waiting.aws.item()["ttl"]) == ("cancelled", before)


# Races


@pytest.mark.parametrize("reason", [SEND_AT, OUTSIDE_WINDOW])
def test_a_stale_row_of_the_index_does_not_change_a_message_that_was_already_queued(
    waiting: Waiting, reason: str
) -> None:
    waiting.hold("m-1", reason, NOW)
    waiting.aws.put(MAILBOX, **item(send_at=iso(NOW)))
    pages: list[Any] = []

    def recorded(real: Any, **arguments: Any) -> Any:
        pages.append(real(**arguments))
        return pages[-1]

    waiting.meddle(query=recorded)
    waiting.release_due()
    waiting.aws.dynamodb.delete_item(TableName=MAILBOX, Key=image(id="m-1", event_type="mail"))
    before, replayed = waiting.aws.item(), iter(pages)
    waiting.meddle(query=lambda _real, **_arguments: next(replayed))
    waiting.clock.advance(60)
    waiting.release_due()
    assert next(replayed, None) is None
    assert (waiting.aws.item(), waiting.sent) == (before, [])


def test_a_message_that_a_worker_has_claimed_is_not_cancelled_if_its_mailbox_item_is_missing(
    waiting: Waiting,
) -> None:
    waiting.hold("m-1", SEND_AT, NOW)
    claimed(waiting.ledger)
    waiting.release_due()
    assert (waiting.aws.item()["status"], waiting.marked) == ("sending", [])


# Removed channels


def of_text(id_: str) -> Sms:
    item = {"id": id_, "event_type": "sms", "to": "+16175551234", "text": "Hi", "lane": "bulk"}
    return parse(item, {"sms": Sms})


def had_sms(waiting: Waiting) -> None:
    """Let the stage have had another channel, for one minute."""
    waiting.channels = ("mail", "sms")
    waiting.release_minute()
    waiting.channels = ("mail",)


def test_the_messages_of_a_channel_that_was_removed_by_mistake_are_sent_after_its_return(
    waiting: Waiting,
) -> None:
    had_sms(waiting)
    waiting.hold(of_text("t-1"), DAY_USED_UP, NOW, lines_up=True)
    waiting.clock.advance(REMOVED_SECONDS - 3600)
    waiting.release_minute()
    waiting.channels = ("mail", "sms")
    waiting.release_minute()
    assert [json.loads(entry["MessageBody"])["id"] for entry in waiting.sent] == ["t-1"]


def test_the_round_of_a_removed_channel_leaves_its_messages_waiting_if_the_channel_has_returned(
    waiting: Waiting,
) -> None:
    waiting.channels = ("mail", "sms")
    for id_ in ("t-1", "t-2", "t-3"):
        waiting.hold(of_text(id_), DAY_USED_UP, NOW, lines_up=True)
    for shard in range(SHARDS):
        waiting.release().handle({"removed": "sms", "shard": shard}, plenty)
    assert waiting.marked == ["t-1", "t-2", "t-3"]


@pytest.mark.parametrize("reason", [DAY_USED_UP, PAUSED, RUN_UNKNOWN])
def test_the_messages_of_a_removed_channel_end_as_failed_after_a_day(waiting: Waiting, reason: str) -> None:
    had_sms(waiting)
    waiting.hold(of_text("t-1"), reason, NOW, lines_up=True)
    for _ in range(23):
        waiting.clock.advance(3600)
        waiting.release_minute()
    assert (waiting.marked, waiting.held) == (["t-1"], ["wait of t-1"])
    waiting.clock.advance(3600)
    waiting.release_minute()
    assert (waiting.sent, waiting.marked, waiting.held) == ([], [], [])
    ended = waiting.aws.item("t-1", "sms")
    assert (ended["status"], ended["error"]["code"], ended["error"]["message"]) == (
        *("failed", "invalid"),
        "its lane 'bulk' of sms does not exist any more; put the message under a new id in another lane",
    )


def test_a_message_of_a_removed_channel_fails_when_its_window_opens(
    waiting: Waiting,
) -> None:
    waiting.hold(of_text("t-1"), OUTSIDE_WINDOW, NOW)
    waiting.release_due()
    assert waiting.aws.item("t-1", "sms")["error"]["code"] == "invalid"
    assert (waiting.sent, waiting.marked, waiting.held) == ([], [], [])


def test_a_claimed_message_of_a_removed_channel_loses_its_wait_and_does_not_fail(
    waiting: Waiting,
) -> None:
    had_sms(waiting)
    message = of_text("t-1")
    waiting.hold(message, DAY_USED_UP, NOW, lines_up=True)
    claimed(waiting.ledger, message)
    waiting.clock.advance(REMOVED_SECONDS)
    waiting.release_minute()
    assert (waiting.aws.item("t-1", "sms")["status"], waiting.marked) == ("sending", [])


def test_release_reads_the_waiting_messages_of_removed_channels_once_an_hour(waiting: Waiting) -> None:
    had_sms(waiting)
    for seconds, lists in ((0, 5), (REMOVED_SECONDS, 5 + 3), (60, 5), (3480, 5), (60, 5 + 3)):
        waiting.clock.advance(seconds)
        waiting.meddle()
        waiting.release_minute()
        assert waiting.dynamodb.names().count("query") == lists * SHARDS


# Trouble


def test_a_message_with_unreadable_content_keeps_waiting_and_does_not_block_other_messages(
    waiting: Waiting, counted: Counted, log: Log
) -> None:
    waiting.hold("m-2", OUTSIDE_WINDOW, NOW, "bad")
    for id_ in sharing("m-2", 3):
        waiting.hold(id_, OUTSIDE_WINDOW, NOW)
    waiting.aws.put(CONTENTS, message="mail#m-2", version="bad", body="no bytes")
    waiting.release_due()
    assert len(waiting.sent) == 3
    assert waiting.marked == ["m-2"]
    assert (counted()["Released"], counted()["ReleaseErrors"]) == (3, 1)
    assert [(line["message"], line["id"]) for line in log() if line["level"] == "ERROR"] == [
        ("not released; the next round tries it again", "m-2")
    ]


def test_an_invalid_message_that_becomes_due_is_queued_for_its_worker(waiting: Waiting) -> None:
    waiting.hold(mail(to="nobody"), OUTSIDE_WINDOW, NOW)
    waiting.release_due()
    assert [json.loads(entry["MessageBody"])["to"] for entry in waiting.sent] == ["nobody"]
    assert (waiting.marked, waiting.held) == ([], [])


def sharing(id_: str, count: int) -> list[str]:
    """Return ids of the same shard as `id_`."""
    shard = crc32(id_.encode()) % SHARDS
    ids = (f"n-{number}" for number in range(1000))
    return [*islice((other for other in ids if crc32(other.encode()) % SHARDS == shard), count)]


def test_a_message_that_sqs_refuses_keeps_its_wait_and_its_stored_content(waiting: Waiting) -> None:
    waiting.hold("m-1", OUTSIDE_WINDOW, NOW)
    waiting.hold(mail("m-2", lane="bulk"), OUTSIDE_WINDOW, NOW)

    def refusing(real: Callable[..., Any], **arguments: Any) -> Any:
        if arguments["QueueUrl"] == waiting.aws.urls["mail"]:
            raise client_error("ServiceUnavailable", status=503)
        return real(**arguments)

    waiting.meddle(send_message_batch=refusing)
    waiting.release_due()
    assert waiting.marked == ["m-1"]
    assert waiting.held == ["wait of m-1"]
    assert [each["id"] for each in waiting.aws.bodies("mail-bulk")] == ["m-2"]


def test_a_round_with_too_little_time_left_leaves_due_messages_waiting(waiting: Waiting) -> None:
    waiting.hold("m-1", OUTSIDE_WINDOW, NOW)
    waiting.release_due(lambda: 15_000)
    assert (waiting.sent, waiting.marked) == ([], ["m-1"])


# The lease


def test_a_release_round_only_logs_the_name_of_its_part_if_another_round_has_the_parts_lease(
    waiting: Waiting, log: Log
) -> None:
    waiting.hold("m-1", OUTSIDE_WINDOW, NOW)
    parts = [*(f"due#{shard}" for shard in range(8)), "line#mail"]
    for part in parts:
        assert waiting.release().lease.take(part)
    waiting.meddle()
    waiting.release_due()
    waiting.release_line()
    assert {*waiting.dynamodb.names()} == {"update_item"}
    assert [line["part"] for line in log()] == parts


def test_the_lease_of_a_crashed_round_expires(waiting: Waiting) -> None:
    lease = waiting.release().lease
    assert lease.take("due#0")
    waiting.clock.advance(ROUND_SECONDS - 1)
    assert not lease.take("due#0")
    waiting.clock.advance(1)
    assert lease.take("due#0")


def test_an_ended_round_releases_its_lease(waiting: Waiting) -> None:
    waiting.release_line()
    (found,) = waiting.aws.dynamodb.scan(TableName=BUDGETS)["Items"]
    assert found == {"name": {"S": "release#line#mail"}}


# Content is read only for what is handed over


def test_a_release_round_reads_the_stored_contents_only_of_messages_that_it_queues(waiting: Waiting) -> None:
    waiting.hold("m-1", OUTSIDE_WINDOW, NOW, "now")
    waiting.hold("m-2", OUTSIDE_WINDOW, NOW + 3600, "later")
    waiting.release_due()
    reads = [
        call["RequestItems"][CONTENTS] for name, call in waiting.dynamodb.calls if name == "batch_get_item"
    ]
    assert [key["version"]["S"] for read in reads for key in read["Keys"]] == ["now"]
    assert [*waiting.contents.get([Held(KEY, "now"), Held(Key("m-2", "mail"), "later")])] == ["later"]
