"""The client for producers."""

import time
import tracemalloc
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, get_type_hints

import boto3
import pytest

from mailroom.aws.dynamo_values import plain
from mailroom.channels.contracts import CONTRACTS
from mailroom.client import TEXTS, Ambiguous, Invalid, Mailroom, NotCancelled, SendResult
from mailroom.clock import iso
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Message
from tests.support.unit.shared import BUCKET, LEDGER, MAILBOX, RUNS, Aws, claimed, item, mail


@pytest.fixture
def mailroom(aws: Aws) -> Mailroom:
    return Mailroom("test")


def test_a_message_is_put_into_the_mailbox_once_and_its_id_cannot_be_used_for_other_content(
    mailroom: Mailroom, aws: Aws
) -> None:
    assert mailroom.send(item()) == SendResult("m-1", "mail", "accepted")
    assert aws.item(table=MAILBOX) == item()
    assert mailroom.send(item()).state == "existed"
    conflict = mailroom.send(item(text="No"))
    assert (conflict.state, conflict.ok, conflict.error[:3]) == ("conflict", False, "id:")


def ordered(aws: Aws, mailroom: Mailroom, **changes: Any) -> None:
    """Put an order and its message in one transaction."""
    order: Any = {"Put": {"TableName": RUNS, "Item": {"campaign": {"S": "order"}, "run": {"S": "7"}}}}
    aws.dynamodb.transact_write_items(TransactItems=[order, mailroom.entry(item(**changes))])


def orders(aws: Aws) -> int:
    return aws.dynamodb.scan(TableName=RUNS)["Count"]


def test_an_order_and_its_message_can_be_put_in_one_transaction(mailroom: Mailroom, aws: Aws) -> None:
    ordered(aws, mailroom)
    assert (aws.item(table=MAILBOX), orders(aws)) == (item(), 1)


def test_a_transaction_with_a_used_message_id_writes_nothing_and_returns_the_existing_message(
    mailroom: Mailroom, aws: Aws
) -> None:
    mailroom.send(item())
    with pytest.raises(aws.dynamodb.exceptions.TransactionCanceledException) as cancelled:
        ordered(aws, mailroom, text="No")
    response: Any = cancelled.value.response
    order, message = response["CancellationReasons"]
    assert (order["Code"], message["Code"]) == ("None", "ConditionalCheckFailed")
    assert plain(message["Item"]) == item()
    assert (aws.item(table=MAILBOX), orders(aws)) == (item(), 0)


def test_a_transaction_entry_puts_the_same_mailbox_item_as_send(aws: Aws) -> None:
    mailroom = Mailroom("test", mailbox_days=30)
    large = item(text="x" * 500_000, attachments=[{"filename": "a.txt", "content": b"A"}])
    ordered(aws, mailroom, **large)
    assert mailroom.send(large).state == "existed"
    assert aws.item(table=MAILBOX)["ttl"] > time.time() + 29 * 86400


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"id": ...}, "id"),
        ({"id": ""}, "id"),
        ({"id": 5}, "id"),
        ({"id": "ü" * 91}, "id"),
        ({"event_type": ...}, "event_type"),
        ({"v": float("nan")}, "v"),
        ({"v": object()}, "v"),
        ({"to": "ada@"}, "to"),
        ({"to": 5}, "to"),
        ({"sendAt": "2099-01-01"}, "sendAt"),
        ({"event_type": "sms", "to": "+1617555123"}, "to"),
    ],
)
def test_send_and_entry_refuse_an_invalid_message_and_name_the_invalid_field(
    mailroom: Mailroom, aws: Aws, changes: dict[str, Any], field: str
) -> None:
    result = mailroom.send(item(**changes))
    assert (result.state, result.ok, result.error.partition(":")[0]) == ("refused", False, field)
    with pytest.raises(Invalid) as refusal:
        mailroom.entry(item(**changes))
    assert refusal.value.field == field
    assert aws.dynamodb.scan(TableName=MAILBOX)["Count"] == 0


@pytest.mark.parametrize("contract", CONTRACTS.values())
def test_each_attribute_that_the_client_checks_as_a_string_is_a_string_in_every_contract(
    contract: type[Message],
) -> None:
    types = get_type_hints(contract)
    assert {name: types[name] in (str, str | None) for name in TEXTS} == dict.fromkeys(TEXTS, True)


@pytest.mark.parametrize(
    "changes",
    [{"event_type": "own"}, {"event_type": "sms", "to": "(617) 555-1234"}, {"ttl": Decimal(4_000_000_000)}],
)
def test_the_client_puts_a_message_that_only_the_stage_can_check(
    mailroom: Mailroom, changes: dict[str, Any]
) -> None:
    assert mailroom.send(item(**changes)).state == "accepted"


def test_content_that_is_too_large_for_a_mailbox_item_is_put_into_the_payload_bucket(
    mailroom: Mailroom, aws: Aws
) -> None:
    assert mailroom.send(item(text="x" * 500_000)).ok
    assert aws.item(table=MAILBOX)["payload_ref"].startswith(f"s3://{BUCKET}/oversize/")
    assert mailroom.send(item(text="x" * 500_000)).state == "existed"


@pytest.mark.parametrize(("days", "ahead", "valid"), [(90, 74, True), (90, 76, False), (365, 349, True)])
def test_the_client_refuses_a_send_at_after_the_expiry_of_large_content_in_s3(
    aws: Aws, days: int, ahead: int, *, valid: bool
) -> None:
    large = item(text="x" * 500_000, send_at=iso(time.time() + ahead * 86400))
    result = Mailroom("test", payload_days=days).send(large)
    assert (result.ok, result.error.partition(":")[0]) == (valid, "" if valid else "send_at")


def test_without_the_parameter_payload_days_the_client_assumes_the_default_of_the_deployed_stacks(
    aws: Aws,
) -> None:
    large = item(text="x" * 500_000, send_at=iso(time.time() + 76 * 86400))
    assert Mailroom("test").send(large).error.startswith("send_at: is over 75 days ahead")


def test_the_client_uses_the_region_of_the_boto3_session_passed_to_it(aws: Aws) -> None:
    mailroom = Mailroom("test", boto3.Session(region_name="us-west-2"))
    assert mailroom.send(item()) == SendResult("m-1", "mail", "failed", "PutItem: ResourceNotFoundException")


def test_send_many_reports_results_in_order_and_counts_them_by_state(mailroom: Mailroom, aws: Aws) -> None:
    mailroom.send(item(id="m-3"))
    mailroom.send(item(id="m-4", text="No"))
    counts: list[int] = []
    ids: list[str] = []
    items = [*(item(id=f"m-{number}") for number in range(50)), item(id="")]
    summary = mailroom.send_many(items, counts.append, on_result=lambda result: ids.append(result.id))
    assert (summary.accepted, summary.existed, summary.conflict) == (48, 1, 1)
    assert (summary.refused, summary.failed, summary.total) == (1, 0, 51)
    assert counts == list(range(1, 52))
    assert ids == [*(f"m-{number}" for number in range(50)), ""]
    assert [(problem.id, problem.state) for problem in summary.problems] == [
        ("m-4", "conflict"),
        ("", "refused"),
    ]


def test_send_many_repeated_after_an_interruption_sends_only_the_missing_messages(
    mailroom: Mailroom, aws: Aws
) -> None:
    items = [item(id=f"m-{number}") for number in range(20)]
    mailroom.send_many(items[:7])
    summary = mailroom.send_many(items)
    assert (summary.existed, summary.accepted) == (7, 13)


def test_send_many_keeps_only_a_few_messages_in_memory_at_a_time(
    mailroom: Mailroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(_self: Mailroom, message: Any, **_: Any) -> SendResult:
        return SendResult(message["id"], message["event_type"], "failed", "out of reach")

    started = most_pending = 0

    def items() -> Iterator[dict[str, Any]]:
        nonlocal started
        for number in range(5000):
            started += 1
            yield item(id=str(number), text="x" * 20_000 + str(number))

    def watch(finished: int) -> None:
        nonlocal most_pending
        most_pending = max(most_pending, started - finished)

    monkeypatch.setattr(Mailroom, "send", send)
    tracemalloc.start()
    try:
        summary = mailroom.send_many(items(), watch)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert summary.failed == 5000
    assert len(summary.problems) == 1000
    assert most_pending <= mailroom.workers * 4
    assert peak < 10_000_000  # the messages have 100 MB together


def test_the_status_of_a_message_is_ready_until_the_ledger_contains_its_item(
    mailroom: Mailroom, ledger: Ledger
) -> None:
    assert mailroom.status("m-1") is None
    mailroom.send(item())
    ready = mailroom.status("m-1")
    assert ready is not None
    assert (ready.status, ready.attempts) == ("ready", 0)
    ledger.complete(claimed(ledger), "ses", "0101")
    sent = mailroom.status("m-1", "mail")
    assert sent is not None
    assert (sent.status, sent.attempts, sent.provider_id) == ("sent", 1, "0101")
    assert mailroom.status("m-1", "sms") is None


def test_status_raises_an_error_that_names_the_channels_if_several_channels_use_the_id(
    mailroom: Mailroom, aws: Aws
) -> None:
    mailroom.send(item())
    aws.put(LEDGER, id="m-1", event_type="sms", status="sent")
    with pytest.raises(Ambiguous, match="mail, sms") as caught:
        mailroom.status("m-1")
    assert caught.value.event_types == ["mail", "sms"]


def send_later(mailroom: Mailroom, **changes: Any) -> None:
    """Send a message with a later send_at."""
    assert mailroom.send(item(send_at=iso(time.time() + 3600), **changes)).ok


def test_a_message_with_a_future_send_at_can_be_cancelled_and_its_status_changes_at_once(
    mailroom: Mailroom, aws: Aws, ledger: Ledger
) -> None:
    send_later(mailroom, callback_url="https://shop.example/callback")
    for _ in range(2):
        assert mailroom.cancel("m-1").status == "cancelled"
    status = mailroom.status("m-1")
    assert status is not None
    error = {"code": "cancelled", "message": "it was cancelled before it was sent"}
    assert (status.status, status.error) == ("cancelled", error)
    row = aws.item()
    assert (row["callback_url"], row["callbacks"], row["history"][0]["status"]) == (
        "https://shop.example/callback",
        {},
        "cancelled",
    )
    assert type(ledger.claim(mail())).__name__ == "Completed"


def test_a_claimed_or_sent_or_unknown_message_cannot_be_cancelled(mailroom: Mailroom, ledger: Ledger) -> None:
    with pytest.raises(NotCancelled, match="there is no such message"):
        mailroom.cancel("m-1")
    claim = claimed(ledger)
    with pytest.raises(NotCancelled, match="it is sending"):
        mailroom.cancel("m-1")
    ledger.complete(claim, "ses", "0101")
    with pytest.raises(NotCancelled, match="it is sent"):
        mailroom.cancel("m-1", "mail")


def test_the_content_of_an_attachment_is_put_into_the_payload_bucket(
    aws: Aws,
) -> None:
    mailroom = Mailroom("test", payload_bucket=BUCKET)
    bill = {"filename": "bill.pdf", "content_type": "application/pdf"}
    terms = {"ref": f"s3://{BUCKET}/terms"}
    message = item(attachments=[{**bill, "content": b"%PDF"}, terms])
    assert mailroom.send(message).state == "accepted"
    assert mailroom.send(message).state == "existed"
    stored, reference = aws.item(table=MAILBOX)["attachments"]
    assert reference == terms
    key = stored.pop("ref").removeprefix(f"s3://{BUCKET}/")
    assert stored == bill
    assert aws.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"%PDF"


@pytest.mark.parametrize("content", ["text", None, bytearray(b"x")])
def test_an_attachment_whose_content_is_not_bytes_is_refused(aws: Aws, content: object) -> None:
    message = item(attachments=[{"ref": f"s3://{BUCKET}/terms"}, {"content": content}])
    result = Mailroom("test", payload_bucket=BUCKET).send(message)
    kind = type(content).__name__
    assert result.error == f"attachments[1].content: must be bytes, not {kind}; convert it, or use a ref"
    assert result.state == "refused"
    assert aws.item(table=MAILBOX) == {}


@pytest.mark.parametrize("content", [{"attachments": [{"content": b"x"}]}, {"text": "x" * 500_000}])
def test_a_message_whose_content_cannot_be_put_into_the_payload_bucket_is_not_sent(
    aws: Aws, content: dict[str, Any]
) -> None:
    result = Mailroom("test", payload_bucket="nosuch").send(item(**content))
    assert (result.state, result.error) == ("failed", "PutObject: NoSuchBucket")
    assert aws.item(table=MAILBOX) == {}
