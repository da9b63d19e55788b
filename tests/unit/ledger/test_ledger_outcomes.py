"""The ledger's verbs that end a message."""

import pytest

from mailroom.aws.dynamo_values import plain
from mailroom.ledger.items import MAX_ERROR
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from tests.support.told import ses_event
from tests.support.unit.shared import KEY, LEDGER, NOW, NOW_MS, TTL, Aws, FakeClock, claimed, image, mail
from tests.support.unit.verbs import watched


def test_the_ledger_item_of_a_sent_mail_needs_only_one_write_unit(aws: Aws, clock: FakeClock) -> None:
    ledger, _ = watched(aws, clock)
    long = mail(
        "k" * 180, to=f"{'n' * 64}@{'d' * 60}.example", callback_url="https://shop.example/" + "c" * 80
    )
    ledger.complete(claimed(ledger, long), "ses", "0107018f" * 7 + "-000000")
    stored = aws.dynamodb.get_item(TableName=LEDGER, Key=image(id="k" * 180, event_type="mail"))["Item"]
    size = sum(len(name) + _estimated_size(value) for name, value in stored.items())
    assert 500 < size < 1024


def _estimated_size(value: object) -> int:
    match value:
        case dict():
            return 3 + sum(len(str(name)) + _estimated_size(part) for name, part in value.items())
        case list():
            return 3 + sum(1 + _estimated_size(part) for part in value)
        case _:
            return len(str(value).encode())


def test_completing_a_message_records_the_provider_the_provider_id_and_the_time(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claim = claimed(ledger)
    clock.advance(2)
    ledger.complete(claim, "ses", "p-1")
    stored = aws.item()
    assert (stored["status"], stored["provider"], stored["provider_id"]) == ("sent", "ses", "p-1")
    assert (stored["completedAt"], stored["attempts"]) == (NOW_MS + 2000, 1)
    assert stored["history"] == [{"at": NOW_MS + 2000, "status": "sent"}]
    assert stored["ttl"] == int(NOW + 2 + TTL)
    assert "failed_as" not in stored


@pytest.mark.parametrize("status", ["sent", "delivered", "bounced"])
def test_completing_a_message_after_an_event_adds_the_provider_id_and_keeps_the_events_status(
    ledger: Ledger, aws: Aws, clock: FakeClock, status: str
) -> None:
    claim = claimed(ledger)
    clock.advance(1)
    observe(ledger, [ses_event(KEY, status, provider_id=None)])  # type: ignore[arg-type]
    clock.advance(1)
    ledger.complete(claim, "ses", "p-1")
    stored = aws.item()
    assert (stored["status"], stored["provider"], stored["provider_id"]) == (status, "ses", "p-1")
    assert stored["completedAt"] == NOW_MS + 1000


def test_completing_a_message_after_an_event_with_the_same_provider_id_makes_one_write(
    aws: Aws, clock: FakeClock
) -> None:
    ledger, client = watched(aws, clock)
    claim = claimed(ledger)
    observe(ledger, [ses_event(KEY, "sent")])
    client.calls.clear()
    ledger.complete(claim, "ses", "p-1")
    assert client.names() == ["update_item"]


def test_a_failed_message_has_a_reason_and_is_in_the_index_of_failures_by_its_status(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.fail(claimed(ledger), "rejected", "MessageRejected: Address is blacklisted")
    stored = aws.item()
    assert stored["error"] == {"code": "rejected", "message": "MessageRejected: Address is blacklisted"}
    assert stored["history"] == [{"at": NOW_MS, "status": "failed", "code": "rejected"}]
    rows = aws.dynamodb.query(
        TableName=LEDGER,
        IndexName="failures",
        KeyConditionExpression="failed_as = :failed_as",
        ExpressionAttributeValues={":failed_as": {"S": stored["failed_as"]}},
    )["Items"]
    assert [*map(plain, rows)] == [stored]
    assert stored["failed_as"].startswith("failed#")


def test_a_long_error_message_is_cut_to_the_maximum_length(ledger: Ledger, aws: Aws) -> None:
    ledger.fail(claimed(ledger), "rejected", "x" * 10_000)
    assert aws.item()["error"]["message"] == "x" * MAX_ERROR
