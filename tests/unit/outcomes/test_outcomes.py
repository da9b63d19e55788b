"""Outcomes: changes of the ledger in, callbacks and further attempts out."""

import json
import math
from typing import Any

import msgspec
import pytest

from mailroom.channels.fax.contract import Fax, item_of
from mailroom.clock import iso
from mailroom.message.message import parse
from mailroom.outcomes import Callback
from tests.support.unit.consequences import FAX, Consequences, busy, change
from tests.support.unit.fax import LINE, PDF, TOLD
from tests.support.unit.post import Counted
from tests.support.unit.shared import NOW, Aws, FakeClock, image


def test_a_busy_fax_is_told_of_and_tried_again_in_ten_minutes(
    outcomes: Consequences, aws: Aws, counted: Counted
) -> None:
    assert outcomes.handle(busy()) == set()
    (callback,) = aws.bodies("webhook")
    assert (callback["url"], callback["name"], callback["payload"]["status"]) == (
        TOLD,
        "retrying.1",
        "tmp_fail",
    )
    (entry,) = outcomes.entries("fax-retry")
    assert entry["DelaySeconds"] == 600
    assert json.loads(entry["MessageBody"]) == {
        "fax_id": "f-1",
        "to": LINE,
        "pdf_url": PDF,
        "callback_url": TOLD,
        "attempt": 2,
        "not_before": NOW + 600,
    }
    assert counted() == {"Callbacks": 1, "Retries": 1}


def test_what_is_queued_for_a_retry_is_a_fax(outcomes: Consequences) -> None:
    kept: dict[str, Any] = {"from": "+12025550101", "retry_count": 3}
    outcomes.handle(busy(attempts=4, **kept))
    (entry,) = outcomes.entries("fax-retry")
    fax = parse(item_of(json.loads(entry["MessageBody"])), {"fax": Fax})
    assert (fax.attempt, fax.line, fax.callback_url, fax.from_) == (5, LINE, TOLD, "+12025550101")
    assert fax.retry_count == 3


def test_what_is_queued_for_a_receiver_is_what_the_webhook_sender_reads(
    outcomes: Consequences, aws: Aws
) -> None:
    outcomes.handle(change(status="sent", attempts=1))
    (found,) = aws.receive("webhook")
    callback = msgspec.json.decode(found["Body"], type=Callback)
    assert (callback.key.id, callback.key.event_type, callback.name) == ("f-1", "fax", "sent.1")
    assert callback.payload["fax_id"] == "f-1"


@pytest.mark.parametrize(
    ("delay", "late", "queued"),
    [
        (600, 0, 600),
        (600, 599.5, 1),
        (600, 900, 0),
        (900, 0, 900),
        (901, 0, 900),
        (30_000, 0, 900),
        (0, 0, 0),
    ],
)
def test_a_queue_waits_for_as_long_as_it_can_and_the_body_says_the_rest(
    fax_queues: Aws, clock: FakeClock, delay: float, late: float, queued: int
) -> None:
    outcomes = Consequences(fax_queues, clock, retry_delay_seconds=delay)
    clock.advance(late)
    assert outcomes.handle(busy()) == set()
    (entry,) = outcomes.entries("fax-retry")
    assert entry.get("DelaySeconds", 0) == queued
    assert json.loads(entry["MessageBody"])["not_before"] == NOW + delay


def test_a_moment_that_is_no_whole_second_is_waited_for_and_not_anticipated(
    fax_queues: Aws, clock: FakeClock
) -> None:
    outcomes = Consequences(fax_queues, clock)
    outcomes.handle(busy(updatedAt=iso(NOW + 0.25)))
    (entry,) = outcomes.entries("fax-retry")
    assert clock() + entry["DelaySeconds"] >= json.loads(entry["MessageBody"])["not_before"]
    assert math.ceil(NOW + 600.25) <= json.loads(entry["MessageBody"])["not_before"] + 0.75


def test_callbacks_are_grouped_by_host_so_that_a_dead_one_holds_up_no_other(
    outcomes: Consequences,
) -> None:
    urls = ("https://a.example/1", "https://a.example/2", "https://b.example/")
    records = [change(100 + at, {**FAX, "callback_url": url}, status="sent") for at, url in enumerate(urls)]
    outcomes.handle(*records)
    entries = outcomes.entries("webhook")
    assert [each["MessageGroupId"] for each in entries] == ["a.example", "a.example", "b.example"]
    assert not any("MessageDeduplicationId" in each for each in entries)


def test_a_batch_takes_a_call_for_each_ten_of_a_queue(outcomes: Consequences) -> None:
    records = [change(100 + at, {**FAX, "id": f"f-{at}"}, status="sent") for at in range(25)]
    assert outcomes.handle(*records) == set()
    assert len(outcomes.sqs.calls) == 3
    assert len(outcomes.entries("webhook")) == 25


@pytest.mark.parametrize(
    "record",
    [
        change(),
        change(old={**FAX, "status": "sent"}, callbacks={"sent.1": {"status": "delivered"}}),
        change(old={**FAX, "status": "retrying"}, callbacks={"retrying.1": {"status": "delivered"}}),
        change(old={**FAX, "status": "retrying"}, status="sending"),
        change(old={**FAX, "status": "sent", "callback_url": "", "callbacks": 7}, status="delivered"),
        {"eventName": "REMOVE", "dynamodb": {"SequenceNumber": "1", "OldImage": image(**FAX)}},
    ],
)
def test_a_change_without_a_consequence_asks_nothing_of_any_queue(
    outcomes: Consequences, record: dict[str, Any], counted: Counted
) -> None:
    assert outcomes.handle(record) == set()
    assert (outcomes.sqs.calls, counted()) == ([], {})


def test_a_fax_that_was_reopened_is_tried_at_once_and_nobody_is_told_of_that(
    outcomes: Consequences,
) -> None:
    old = {**FAX, "status": "failed", "attempts": 20}
    assert outcomes.handle(change(1, old, status="retrying", generation=1)) == set()
    (entry,) = outcomes.entries("fax-retry")
    assert "DelaySeconds" not in entry
    assert json.loads(entry["MessageBody"])["attempt"] == 21
    assert outcomes.entries("webhook") == []


def test_a_mail_that_waits_for_its_next_try_is_no_business_of_the_retry_queue(
    fax_queues: Aws, clock: FakeClock
) -> None:
    outcomes = Consequences(fax_queues, clock, retry_queue_url="")
    mail = {**FAX, "id": "m-1", "event_type": "mail"}
    assert outcomes.handle(change(1, mail, status="retrying", attempts=1)) == set()
    assert len(outcomes.entries("webhook")) == 1
    assert outcomes.entries("fax-retry") == []
