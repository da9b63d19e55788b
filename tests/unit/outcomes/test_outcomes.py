"""Outcomes: changes of the ledger lead to callbacks and to further attempts of faxes."""

import json
import math
from typing import Any

import msgspec
import pytest

from mailroom.channels.fax.contract import Fax, item_of
from mailroom.clock import iso
from mailroom.message.message import parse
from mailroom.outcomes import Callback
from tests.support.unit.consequences import FAX, Consequences, busy, ledger_record
from tests.support.unit.fax import LINE, PDF, TOLD
from tests.support.unit.post import Counted
from tests.support.unit.shared import NOW, Aws, FakeClock, image


def test_a_busy_fax_causes_a_callback_and_a_retry_in_ten_minutes(
    consequences: Consequences, aws: Aws, counted: Counted
) -> None:
    assert consequences.handle(busy()) == set()
    (callback,) = aws.bodies("webhook")
    assert (callback["url"], callback["name"], callback["payload"]["status"]) == (
        TOLD,
        "retrying.1",
        "tmp_fail",
    )
    (entry,) = consequences.entries("fax-retry")
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


def test_a_queued_retry_can_be_parsed_as_a_fax(consequences: Consequences) -> None:
    attributes: dict[str, Any] = {"from": "+12025550101", "retry_count": 3}
    consequences.handle(busy(attempts=4, **attributes))
    (entry,) = consequences.entries("fax-retry")
    fax = parse(item_of(json.loads(entry["MessageBody"])), {"fax": Fax})
    assert (fax.attempt, fax.line, fax.callback_url, fax.from_) == (5, LINE, TOLD, "+12025550101")
    assert fax.retry_count == 3


def test_a_queued_callback_can_be_decoded_by_the_webhook_sender(consequences: Consequences, aws: Aws) -> None:
    consequences.handle(ledger_record(status="sent", attempts=1))
    (record,) = aws.receive("webhook")
    callback = msgspec.json.decode(record["Body"], type=Callback)
    assert (callback.key.id, callback.key.event_type, callback.name) == ("f-1", "fax", "sent.1")
    assert callback.payload["fax_id"] == "f-1"


@pytest.mark.parametrize(
    ("delay", "lateness", "queued"),
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
def test_a_retry_is_delayed_at_most_900_seconds_by_sqs_and_contains_its_due_time(
    aws: Aws, clock: FakeClock, delay: float, lateness: float, queued: int
) -> None:
    outcomes = Consequences(aws, clock, retry_delay_seconds=delay)
    clock.advance(lateness)
    assert outcomes.handle(busy()) == set()
    (entry,) = outcomes.entries("fax-retry")
    assert entry.get("DelaySeconds", 0) == queued
    assert json.loads(entry["MessageBody"])["not_before"] == NOW + delay


def test_the_delay_of_a_retry_due_at_a_fraction_of_a_second_does_not_end_too_early(
    aws: Aws, clock: FakeClock
) -> None:
    outcomes = Consequences(aws, clock)
    outcomes.handle(busy(updatedAt=iso(NOW + 0.25)))
    (entry,) = outcomes.entries("fax-retry")
    assert clock() + entry["DelaySeconds"] >= json.loads(entry["MessageBody"])["not_before"]
    assert math.ceil(NOW + 600.25) <= json.loads(entry["MessageBody"])["not_before"] + 0.75


def test_callbacks_are_queued_with_their_host_as_message_group_and_without_a_deduplication_id(
    consequences: Consequences,
) -> None:
    urls = ("https://a.example/1", "https://a.example/2", "https://b.example/")
    records = [
        ledger_record(number, {**FAX, "callback_url": url}, status="sent") for number, url in enumerate(urls)
    ]
    consequences.handle(*records)
    entries = consequences.entries("webhook")
    assert [entry["MessageGroupId"] for entry in entries] == ["a.example", "a.example", "b.example"]
    assert not any("MessageDeduplicationId" in entry for entry in entries)


def test_callbacks_are_queued_with_at_most_ten_entries_per_call(consequences: Consequences) -> None:
    records = [ledger_record(number, {**FAX, "id": f"f-{number}"}, status="sent") for number in range(25)]
    assert consequences.handle(*records) == set()
    assert len(consequences.sqs.calls) == 3
    assert max(len(call["Entries"]) for _, call in consequences.sqs.calls) == 10
    assert len(consequences.entries("webhook")) == 25


@pytest.mark.parametrize(
    "record",
    [
        ledger_record(),
        ledger_record(old={**FAX, "status": "sent"}, callbacks={"sent.1": {"status": "delivered"}}),
        ledger_record(old={**FAX, "status": "retrying"}, callbacks={"retrying.1": {"status": "delivered"}}),
        ledger_record(old={**FAX, "status": "retrying"}, status="sending"),
        ledger_record(old={**FAX, "status": "sent", "callback_url": "", "callbacks": 7}, status="delivered"),
        {"eventName": "REMOVE", "dynamodb": {"SequenceNumber": "1", "OldImage": image(**FAX)}},
    ],
)
def test_a_ledger_change_without_callback_or_retry_makes_no_call_to_sqs(
    consequences: Consequences, record: dict[str, Any], counted: Counted
) -> None:
    assert consequences.handle(record) == set()
    assert (consequences.sqs.calls, counted()) == ([], {})
