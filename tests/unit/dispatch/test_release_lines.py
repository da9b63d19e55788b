"""Release: whoever waits for the day keeps a place, which is the time of the put, and a round reads no more
than it hands over."""

import math
import operator
import zlib
from collections.abc import Mapping
from typing import Any

from mailroom.aws.queues import DUE_AT
from mailroom.clock import iso
from mailroom.ledger.items import PAUSED
from mailroom.ledger.waits import DAY_USED_UP, OUTSIDE_WINDOW, PAGE, SHARDS
from mailroom.message.message import decode, encode
from mailroom.message.window import Window
from tests.support.unit.post import Make
from tests.support.unit.releasing import Waiting
from tests.support.unit.shared import BUDGETS, CONTENTS, LEDGER, NOW, image, item, mail

HOUR = 3600
MINUTE = 60
"""Seconds after the full hour from which a round reads no lists of removed channels."""
FORENOON = Window(from_="08:00", to="10:00", zone="UTC")
"""Window that is open for another hour."""
AFTERNOON = Window(from_="14:00", to="16:00", zone="UTC")


def ids_sent(waiting: Waiting) -> list[str]:
    """Return the ids of the messages that SQS was given, in order."""
    return [decode(entry["MessageBody"])["id"] for entry in waiting.sent]


def is_closed(waiting: Waiting) -> bool:
    """Return whether no message has to wait behind others."""
    return waiting.budget.line().at == math.inf


# The day and the pace


def test_the_messages_that_were_put_first_are_released_first_within_the_daily_limit(waiting: Waiting) -> None:
    waiting.limit(3)
    waiting.line_up("a", "b", "c", "d")
    waiting.release_line()
    assert ids_sent(waiting) == ["a", "b", "c"]
    assert (waiting.marked, waiting.held) == (["d"], ["wait of d"])
    assert not is_closed(waiting)


def test_a_message_to_one_recipient_does_not_overtake_a_message_to_several_in_the_waiting_line(
    waiting: Waiting,
) -> None:
    waiting.limit(3)
    waiting.line_up("a", "b", to=["a@example.com", "b@example.com"])
    waiting.hold(mail("c", lane="bulk"), DAY_USED_UP, NOW, put_at=NOW, lines_up=True)
    waiting.release_line()
    assert ids_sent(waiting) == ["a"]


def test_a_released_message_may_use_the_daily_limit_before_a_message_that_was_put_later(
    waiting: Waiting,
) -> None:
    waiting.limit(2)
    waiting.line_up("a", "b", "c")
    budget = waiting.budget
    assert budget.ask(1, NOW - 1000).recipients == 0
    waiting.release_line()
    assert budget.ask(2, NOW - 999).recipients == 2
    assert budget.ask(1, NOW - 998).recipients == 0


def test_release_fills_a_lanes_queue_only_up_to_the_messages_that_its_pace_sends_in_two_minutes(
    waiting: Waiting,
) -> None:
    waiting.limit(1000, per_second=1 / 24)
    waiting.aws.sqs.send_message(QueueUrl=waiting.aws.urls["mail-bulk"], MessageBody="{}")
    waiting.line_up("a", "b", "c", "d", "e", "f")
    waiting.release_line()
    assert ids_sent(waiting) == ["a", "b", "c", "d"]
    assert not is_closed(waiting)


def test_an_empty_waiting_line_is_closed_so_that_every_message_may_use_the_daily_limit(
    waiting: Waiting,
) -> None:
    waiting.limit(10)
    waiting.line_up("a", "b")
    waiting.release_line()
    assert (ids_sent(waiting), is_closed(waiting)) == (["a", "b"], True)
    assert waiting.budget.ask(1, NOW).recipients == 1


def test_a_message_that_joins_the_waiting_line_during_a_round_is_released_before_the_line_closes(
    waiting: Waiting,
) -> None:
    def joined(real: Any, **arguments: Any) -> Any:
        waiting.meddle()
        late = waiting.sqs
        waiting.line_up("b")
        response = real(**arguments)
        late.calls.append(("send_message_batch", arguments))
        return response

    waiting.limit(10)
    waiting.line_up("a")
    waiting.meddle(send_message_batch=joined)
    waiting.release_line()
    assert waiting.marked == []
    assert is_closed(waiting)


def test_messages_stay_in_the_open_waiting_line_while_the_daily_limit_is_used_up(
    waiting: Waiting,
) -> None:
    waiting.limit(2)
    waiting.budget.ask(2)
    waiting.line_up("a")
    waiting.release_line()
    assert (ids_sent(waiting), waiting.marked, is_closed(waiting)) == ([], ["a"], False)


def test_a_closed_waiting_line_is_opened_again_if_messages_still_wait_in_it(waiting: Waiting) -> None:
    waiting.limit(2)
    waiting.budget.ask(2)
    waiting.hold(mail(lane="bulk"), DAY_USED_UP, NOW, put_at=NOW - 60, lines_up=True)
    assert is_closed(waiting)
    waiting.release_line()
    assert not is_closed(waiting)
    assert waiting.budget.ask(1, NOW - 59).line_at == NOW - 61


def test_a_message_with_more_recipients_than_the_daily_limit_is_released_to_its_worker(
    waiting: Waiting,
) -> None:
    waiting.limit(10)
    waiting.line_up("a", to=[f"{number}@example.com" for number in range(5)])
    waiting.limit(4)
    waiting.line_up("b")
    waiting.release_line()
    assert ids_sent(waiting) == ["b", "a"] or ids_sent(waiting) == ["a", "b"]
    assert waiting.marked == []


def test_messages_in_the_waiting_line_are_released_if_the_daily_limit_was_removed(waiting: Waiting) -> None:
    waiting.limit(1)
    waiting.line_up("a", "b")
    waiting.settings = type(waiting.settings)(per_second=1000)
    waiting.release_line()
    assert ids_sent(waiting) == ["a", "b"]


def test_messages_in_the_waiting_line_fail_with_the_reason_if_their_lane_was_removed(
    waiting: Waiting,
) -> None:
    waiting.limit(10)
    waiting.line_up("a")
    waiting.lanes = "normal"
    waiting.release_line()
    assert waiting.aws.item("a")["error"]["message"].startswith("its lane 'bulk' of mail does not exist")
    assert (waiting.marked, is_closed(waiting)) == ([], True)


def test_the_due_at_of_a_message_that_the_daily_limit_or_a_paused_run_held_is_its_time_of_release(
    waiting: Waiting,
) -> None:
    waiting.line_up("a")
    waiting.hold(mail("b", lane="bulk"), PAUSED, NOW, put_at=NOW - 60)
    waiting.clock.advance(30)
    waiting.release_line()
    due = [entry["MessageAttributes"][DUE_AT]["StringValue"] for entry in waiting.sent]
    assert due == [str(int(NOW + 30))] * 2


def test_a_due_bulk_message_joins_the_waiting_line_before_messages_that_were_put_later(
    waiting: Waiting,
) -> None:
    waiting.limit(1)
    waiting.line_up("b", "c")
    waiting.hold(
        mail("a", lane="bulk"), OUTSIDE_WINDOW, NOW, put_at=NOW - 2000, window=FORENOON, lines_up=True
    )
    waiting.release_due()
    assert ids_sent(waiting) == []
    waiting.release_line()
    assert ids_sent(waiting) == ["a"]


def test_a_bulk_message_does_not_join_the_waiting_line_before_it_is_due(waiting: Waiting) -> None:
    waiting.hold(mail(lane="bulk"), OUTSIDE_WINDOW, NOW + 60, window=FORENOON, lines_up=True)
    waiting.release_due()
    waiting.release_line()
    assert (ids_sent(waiting), waiting.marked) == ([], ["m-1"])


def test_a_message_that_was_cancelled_in_the_waiting_line_does_not_count_against_the_daily_limit(
    waiting: Waiting,
) -> None:
    waiting.limit(1)
    waiting.line_up("a", "b")
    assert waiting.ledger.cancel(mail("a").key)
    waiting.release_line()
    assert (ids_sent(waiting), waiting.marked, waiting.held) == (["b"], [], [])


# Windows


def test_a_message_keeps_its_place_in_the_waiting_line_while_its_window_is_closed(waiting: Waiting) -> None:
    waiting.limit(1)
    waiting.line_up("a", window=AFTERNOON)
    waiting.hold(mail("b", lane="bulk"), DAY_USED_UP, NOW, put_at=NOW - 900, lines_up=True)
    waiting.hold(mail("c", lane="bulk"), DAY_USED_UP, NOW, put_at=NOW - 800, lines_up=True)
    waiting.release_line()
    assert ids_sent(waiting) == ["b"]  # the window of the first is closed
    assert waiting.aws.item("a")["scheduledFor"] == iso(NOW + 5 * HOUR)
    waiting.clock.advance(29 * HOUR)  # the next day's
    waiting.meddle()
    waiting.release_due()
    waiting.release_line()
    assert ids_sent(waiting) == ["a"]
    assert waiting.marked == ["c"]


def test_a_message_whose_window_closes_while_it_is_in_the_waiting_line_waits_for_the_next_opening(
    waiting: Waiting, make_post: Make
) -> None:
    waiting.limit(1)
    assert waiting.budget.ask(1).recipients == 1
    evening = {"from": "17:00", "to": "19:00", "zone": "UTC"}  # 18:00 in Tokyo
    message = item(lane="bulk", window=evening, time_zone="Asia/Tokyo")
    bulk = make_post(budgets_table=BUDGETS, per_day=waiting.settings.per_day, bulk=True)
    assert bulk.handle(message, waited={"m-1": NOW}) == {}
    assert waiting.aws.item()["wait"]["reason"] == DAY_USED_UP
    waiting.limit(10)
    waiting.clock.advance(2 * HOUR)
    waiting.release_line()
    assert (ids_sent(waiting), waiting.aws.item()["scheduledFor"]) == ([], iso(NOW + 23 * HOUR))
    waiting.clock.advance(21 * HOUR)
    waiting.release_due()
    waiting.release_line()
    assert ids_sent(waiting) == ["m-1"]


def test_a_message_with_a_closed_window_is_not_read_again_before_the_opening(waiting: Waiting) -> None:
    waiting.limit(1)
    waiting.line_up("a", "b", window=AFTERNOON)
    waiting.release_line()
    for _ in range(2):
        rows = Rows()
        waiting.meddle(query=rows.counted)
        waiting.release_due()
        waiting.release_line()
        assert rows.count == 0
    assert (ids_sent(waiting), waiting.marked) == ([], ["a", "b"])


def test_a_message_with_an_unknown_time_zone_is_released_to_its_worker(waiting: Waiting) -> None:
    waiting.limit(10)
    waiting.line_up("a", window=Window(from_="08:00", to="10:00", zone="Mars/Olympus"))
    waiting.release_line()
    assert ids_sent(waiting) == ["a"]


def test_a_round_that_runs_out_of_time_among_closed_windows_leaves_the_waiting_line_open(
    waiting: Waiting,
) -> None:
    waiting.limit(10)
    waiting.line_up(*(f"m-{number:03}" for number in range(250)), window=AFTERNOON)
    times = iter([60_000, *[15_000] * 9])
    waiting.release_line(lambda: next(times))
    in_line = [
        found
        for found in waiting.aws.dynamodb.scan(TableName=LEDGER)["Items"]
        if found["waits_in"]["S"].startswith("line#")
    ]
    assert len(in_line) == 150
    assert not is_closed(waiting)


# The work of a round


class Rows:
    """Number of the rows of the index that queries have read."""

    def __init__(self) -> None:
        self.count = 0

    def counted(self, real: Any, **arguments: Any) -> Any:
        page = real(**arguments)
        self.count += page["Count"]
        return page


def test_the_number_of_rows_that_a_round_reads_is_linear_in_the_due_messages(waiting: Waiting) -> None:
    counts = []
    for messages in (40, 80):
        for number in range(messages):
            waiting.hold(f"m-{messages}-{number}", OUTSIDE_WINDOW, NOW)
            waiting.hold(f"l-{messages}-{number}", OUTSIDE_WINDOW, NOW + HOUR)
        rows = Rows()
        waiting.meddle(query=rows.counted)
        waiting.release_due()
        counts.append((len(waiting.sent), rows.count))
    assert counts == [(40, 40), (80, 80)]


class TenMillion:
    """Part of the index, with ten million rows, which exist only while a query reads them."""

    def __init__(self, list_: str, at: float) -> None:
        self.list = list_
        self.at = int(at)
        self.read = 0

    def query(self, real: Any, **arguments: Any) -> Any:
        values = arguments["ExpressionAttributeValues"]
        name, sign = values[":list"]["S"], arguments["KeyConditionExpression"].split()[-2]
        list_, _, shard = name.rpartition("#")
        if list_ != self.list:
            return real(**arguments)
        if not {"<=": operator.le, ">=": operator.ge}[sign](self.at, int(values[":at"]["N"])):
            return {"Items": [], "Count": 0}
        start = arguments.get("ExclusiveStartKey", {"number": 0})["number"]
        numbers = range(start, min(start + arguments["Limit"], 10_000_000 // SHARDS))
        self.read += len(numbers)
        rows = [self.row(f"{shard}-{number}") for number in numbers]
        return {"Items": rows, "Count": len(rows), "LastEvaluatedKey": {"number": numbers.stop}}

    def row(self, id_: str) -> Mapping[str, Any]:
        mark = {
            "version": id_,
            "expires": None,
            "reason": DAY_USED_UP,
            "lane": "bulk",
            "recipients": 1,
            "window": None,
        }
        known = {"id": id_, "event_type": "mail", "status": "scheduled", "putAt": int(NOW * 1000)}
        return image(**known, waits_at=self.at, wait={**mark, "lines_up": True})

    def contents(self, _real: Any, RequestItems: Any) -> Any:  # noqa: N803 - the name of boto3
        """Return the contents of all messages that are asked for."""
        body = {"B": zlib.compress(encode(item()).encode())}
        return {"Responses": {CONTENTS: [{**key, "body": body} for key in RequestItems[CONTENTS]["Keys"]]}}


def test_ten_million_messages_with_closed_windows_do_not_add_reads_to_a_round(waiting: Waiting) -> None:
    index = TenMillion("lines_up", NOW + 5 * HOUR)
    waiting.clock.advance(MINUTE)
    waiting.limit(1)
    waiting.line_up("a", "b")
    waiting.hold("c", OUTSIDE_WINDOW, NOW)
    waiting.meddle(query=index.query)
    waiting.release_due()
    waiting.release_line()
    assert (ids_sent(waiting), index.read) == (["c", "a"], 0)
    # The round of the due messages reads two lists, and the round of the line three.
    assert waiting.dynamodb.names().count("query") == 5 * SHARDS


def test_a_round_reads_one_page_of_each_shard_if_ten_million_messages_are_in_the_waiting_line(
    waiting: Waiting,
) -> None:
    index = TenMillion("line#mail", NOW - HOUR)
    waiting.limit(100)
    waiting.meddle(query=index.query, batch_get_item=index.contents)
    waiting.release_line()
    assert len(waiting.sent) == 100
    assert index.read <= 100 + SHARDS * PAGE


def test_ten_million_messages_whose_windows_open_at_once_do_not_delay_another_due_message(
    waiting: Waiting,
) -> None:
    index = TenMillion("lines_up", NOW - 60)
    waiting.clock.advance(MINUTE)
    waiting.hold("c", OUTSIDE_WINDOW, NOW)
    waiting.meddle(query=index.query)
    for shard in range(SHARDS):
        times = iter([60_000, 60_000, 60_000, 15_000])
        waiting.release().handle({"shard": shard}, lambda times=times: next(times))  # type: ignore[misc]
    assert ids_sent(waiting) == ["c"]
    assert index.read <= SHARDS * PAGE
