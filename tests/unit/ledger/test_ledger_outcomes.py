"""The ledger's verbs that end a message: what each writes, and writes over nothing."""

import pytest

from mailroom.ledger.items import MAX_ERROR
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from tests.support.told import told
from tests.support.unit.shared import (
    KEY,
    LEDGER,
    NOW,
    NOW_MS,
    TTL,
    Aws,
    FakeClock,
    claimed,
    image,
    mail,
)
from tests.support.unit.verbs import watched


def test_a_mail_on_the_happy_path_costs_two_writes_and_nothing_else(aws: Aws, clock: FakeClock) -> None:
    ledger, client = watched(aws, clock)
    ledger.complete(claimed(ledger), "ses", "p-1")
    assert client.names() == ["update_item", "update_item"]


def test_the_item_of_a_sent_mail_stays_under_one_write_unit(aws: Aws, clock: FakeClock) -> None:
    ledger, _ = watched(aws, clock)
    long = mail(
        "k" * 180, to=f"{'n' * 64}@{'d' * 60}.example", callback_url="https://shop.example/" + "c" * 80
    )
    ledger.complete(claimed(ledger, long), "ses", "0107018f" * 7 + "-000000")
    found = aws.dynamodb.get_item(TableName=LEDGER, Key=image(id="k" * 180, event_type="mail"))["Item"]
    size = sum(len(name) + _size(value) for name, value in found.items())
    assert 500 < size < 1024


def _size(value: object) -> int:
    match value:
        case dict():
            return 3 + sum(len(str(name)) + _size(each) for name, each in value.items())
        case list():
            return 3 + sum(1 + _size(each) for each in value)
        case _:
            return len(str(value).encode())


def test_complete_records_who_sent_it_and_when(ledger: Ledger, aws: Aws, clock: FakeClock) -> None:
    claim = claimed(ledger)
    clock.advance(2)
    ledger.complete(claim, "ses", "p-1")
    found = aws.item()
    assert (found["status"], found["provider"], found["provider_id"]) == ("sent", "ses", "p-1")
    assert (found["completedAt"], found["attempts"]) == (NOW_MS + 2000, 1)
    assert found["history"] == [{"at": NOW_MS + 2000, "status": "sent"}]
    assert found["ttl"] == int(NOW + 2 + TTL)
    assert "failed_on" not in found


@pytest.mark.parametrize("status", ["sent", "delivered", "bounced"])
def test_complete_after_an_event_adds_the_providers_id_and_keeps_the_status(
    ledger: Ledger, aws: Aws, clock: FakeClock, status: str
) -> None:
    claim = claimed(ledger)
    clock.advance(1)
    observe(ledger, [told(KEY, status, provider_id=None)])  # type: ignore[arg-type]
    clock.advance(1)
    ledger.complete(claim, "ses", "p-1")
    found = aws.item()
    assert (found["status"], found["provider"], found["provider_id"]) == (status, "ses", "p-1")
    assert found["completedAt"] == NOW_MS + 1000


def test_complete_after_an_event_with_the_same_id_needs_no_further_write(aws: Aws, clock: FakeClock) -> None:
    ledger, client = watched(aws, clock)
    claim = claimed(ledger)
    observe(ledger, [told(KEY, "sent")])
    client.calls.clear()
    ledger.complete(claim, "ses", "p-1")
    assert client.names() == ["update_item"]


def test_a_failure_says_why_and_enters_the_index_of_its_day_and_channel(ledger: Ledger, aws: Aws) -> None:
    ledger.fail(claimed(ledger), "rejected", "MessageRejected: Address is blacklisted")
    found = aws.item()
    assert found["error"] == {"code": "rejected", "message": "MessageRejected: Address is blacklisted"}
    assert found["history"] == [{"at": NOW_MS, "status": "failed", "code": "rejected"}]
    rows = aws.dynamodb.query(
        TableName=LEDGER,
        IndexName="failures",
        KeyConditionExpression="failed_on = :day",
        ExpressionAttributeValues={":day": {"S": "2026-11-21#mail"}},
    )["Items"]
    assert [row["id"]["S"] for row in rows] == ["m-1"]


def test_what_was_sent_is_not_in_the_index_of_failures(ledger: Ledger, aws: Aws) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    ledger.retry_later(claimed(ledger, mail("m-2")), "busy", "no")
    assert aws.dynamodb.scan(TableName=LEDGER, IndexName="failures")["Items"] == []


def test_a_long_error_is_cut_so_that_the_item_stays_small(ledger: Ledger, aws: Aws) -> None:
    ledger.fail(claimed(ledger), "rejected", "x" * 10_000)
    assert aws.item()["error"]["message"] == "x" * MAX_ERROR
