"""A batch: a fault of one record touches no other, and each log line has its message's key."""

import json

import pytest

from mailroom import telemetry
from mailroom.ledger.ledger import Ledger
from mailroom.message.outcome import Misconfigured, Rejected, Retry, Sent
from tests.support.unit.events import lines_about
from tests.support.unit.fakes import FakeAdapter, Meddler, client_error, failing
from tests.support.unit.post import Counted, Log, Make, Post
from tests.support.unit.shared import Aws, FakeClock, crash, item


@pytest.mark.parametrize("body", ["no", "", "[]", "{}", '{"id": "m-1"}', '{"id": 5, "event_type": "mail"}'])
def test_a_malformed_queue_record_is_retried_at_once_and_the_rest_of_the_batch_is_sent(
    make_post: Make, body: str, counted: Counted, log: Log
) -> None:
    worker = make_post()
    assert worker.handle(item(id="a"), body, item(id="b")) == {"r-1": 0}
    assert worker.submitted == ["a", "b"]
    assert counted() == {"Malformed": 1, "Sent": 2}
    assert lines_about(log(), "not a message")[0]["message_id"] == "r-1"


def test_while_the_ledger_is_down_messages_are_retried_and_not_sent(
    aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    dynamodb = Meddler(
        aws.dynamodb, update_item=failing(*[client_error("InternalServerError", status=500)] * 9)
    )
    worker = Post(aws, clock, FakeAdapter(Sent("p-1")), dynamodb=dynamodb)
    assert worker.handle(item(id="a"), item(id="b"), receives=3) == {"r-0": 16, "r-1": 16}
    assert worker.submitted == []
    assert counted() == {"Errors": 2}


def test_the_metrics_of_a_batch_exclude_earlier_batches(make_post: Make, counted: Counted) -> None:
    worker = make_post()
    worker.handle(item(id="a"))
    worker.handle(item(id="b"))
    assert counted() == {"Sent": 2}


def test_every_log_line_about_a_message_has_the_messages_key_and_omits_its_address(
    make_post: Make, log: Log, ledger: Ledger, clock: FakeClock
) -> None:
    crash(ledger, clock)
    says = (
        Retry("vincent@example.com is slow"),
        OSError("vincent@example.com"),
        Rejected("vincent@example.com"),
    )
    make_post(*says, Misconfigured("vincent@example.com"), Sent("p-1")).handle(
        *(item(id=f"m-{at}") for at in range(1, 6)),
        item(id="m-6", to="vincent@example.com\n"),
        item(id="m-5"),
    )
    lines = log()
    assert len(lines) >= 6
    assert {line["event_type"] for line in lines} == {"mail"}
    assert {line["id"] for line in lines} == {f"m-{at}" for at in range(1, 7)}
    assert "vincent@" not in json.dumps(lines)


def test_a_log_line_written_after_a_message_was_handled_omits_the_messages_key(
    make_post: Make, log: Log
) -> None:
    make_post(Rejected("no")).handle(item())
    telemetry.logger.info("the next invocation's")
    assert [line.get("id") for line in log()] == ["m-1", None]


def test_queue_records_that_were_received_more_often_are_handled_later(make_post: Make) -> None:
    worker = make_post()
    assert worker.handle(*(item(id=f"m-{at}") for at in range(4)), receives=[3, 1, 2, 1]) == {}
    assert worker.submitted == ["m-1", "m-3", "m-2", "m-0"]


def test_queue_records_received_equally_often_are_handled_in_random_order(aws: Aws, clock: FakeClock) -> None:
    """Otherwise a record that cuts the function off would keep the same neighbours from being sent."""
    worker = Post(aws, clock, FakeAdapter(Sent("p-1")), jitter=iter((0.7, 0.2, 0.9)).__next__)
    assert worker.handle(*(item(id=f"m-{at}") for at in range(3)), receives=2) == {}
    assert worker.submitted == ["m-1", "m-0", "m-2"]
