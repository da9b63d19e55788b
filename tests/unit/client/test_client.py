"""The client: for producers, with boto3 alone."""

import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from mailroom.aws.dynamo_values import plain
from mailroom.client import Ambiguous, Invalid, Mailroom, NotCancelled, SendResult, Summary
from mailroom.clock import iso
from mailroom.ledger.ledger import Ledger
from tests.support.unit.shared import BUCKET, LEDGER, MAILBOX, RUNS, Aws, claimed, item, mail


@pytest.fixture
def mailroom(aws: Aws) -> Mailroom:
    return Mailroom("test")


def test_what_is_sent_lies_in_the_mailbox(mailroom: Mailroom, aws: Aws) -> None:
    assert mailroom.send(item()) == SendResult("m-1", "mail", "accepted")
    assert aws.item(table=MAILBOX) == item()
    assert mailroom.send(item()).state == "existed"


def ordered(aws: Aws, mailroom: Mailroom, **changes: Any) -> None:
    """An order, and its message, in one transaction."""
    order: Any = {"Put": {"TableName": RUNS, "Item": {"campaign": {"S": "order"}, "run": {"S": "7"}}}}
    aws.dynamodb.transact_write_items(TransactItems=[order, mailroom.entry(item(**changes))])


def orders(aws: Aws) -> int:
    return aws.dynamodb.scan(TableName=RUNS)["Count"]


def test_a_message_is_put_together_with_what_it_tells_of(mailroom: Mailroom, aws: Aws) -> None:
    ordered(aws, mailroom)
    assert (aws.item(table=MAILBOX), orders(aws)) == (item(), 1)


def test_a_transaction_whose_id_is_used_changes_nothing_and_says_by_what(
    mailroom: Mailroom, aws: Aws
) -> None:
    mailroom.send(item())
    with pytest.raises(aws.dynamodb.exceptions.TransactionCanceledException) as cancelled:
        ordered(aws, mailroom, text="No")
    answer: Any = cancelled.value.response
    order, message = answer["CancellationReasons"]
    assert (order["Code"], message["Code"]) == ("None", "ConditionalCheckFailed")
    assert plain(message["Item"]) == item()
    assert (aws.item(table=MAILBOX), orders(aws)) == (item(), 0)


def test_an_entry_is_what_a_send_of_the_same_item_would_put(aws: Aws) -> None:
    mailroom = Mailroom("test", mailbox_days=30)
    large = item(text="x" * 500_000, attachments=[{"filename": "a.txt", "content": b"A"}])
    ordered(aws, mailroom, **large)
    assert mailroom.send(large).state == "existed"
    assert aws.item(table=MAILBOX)["ttl"] > time.time() + 29 * 86400


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"id": ""}, "id"), ({"event_type": ...}, "event_type"), ({"v": float("nan")}, "v")],
)
def test_what_can_be_no_message_is_no_entry(
    mailroom: Mailroom, aws: Aws, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        mailroom.entry(item(**changes))
    assert refused.value.field == field


def test_an_id_that_is_anothers_is_a_conflict(mailroom: Mailroom, aws: Aws) -> None:
    mailroom.send(item())
    result = mailroom.send(item(text="No"))
    assert (result.state, result.ok, result.error[:3]) == ("conflict", False, "id:")


def test_a_time_is_moved_where_that_is_asked_for(mailroom: Mailroom, aws: Aws) -> None:
    mailroom.send(item(send_at="2026-12-01T00:00:00Z"))
    assert mailroom.send(item(send_at="2026-12-02T00:00:00Z"), if_new=False).ok
    assert aws.item(table=MAILBOX)["send_at"] == "2026-12-02T00:00:00Z"


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
    ],
)
def test_what_can_be_no_message_is_refused_by_its_field(
    mailroom: Mailroom, aws: Aws, changes: dict[str, Any], field: str
) -> None:
    result = mailroom.send(item(**changes))
    assert (result.state, result.error.partition(":")[0]) == ("refused", field)
    assert aws.dynamodb.scan(TableName=MAILBOX)["Count"] == 0


def test_content_that_is_too_large_for_an_item_goes_into_the_stages_bucket(
    mailroom: Mailroom, aws: Aws
) -> None:
    assert mailroom.send(item(text="x" * 500_000)).ok
    assert aws.item(table=MAILBOX)["payload_ref"].startswith(f"s3://{BUCKET}/oversize/")
    assert mailroom.send(item(text="x" * 500_000)).state == "existed"


@pytest.mark.parametrize(("days", "ahead", "good"), [(90, 74, True), (90, 76, False), (365, 349, True)])
def test_large_content_waits_no_longer_than_the_stage_keeps_it(
    aws: Aws, days: int, ahead: int, *, good: bool
) -> None:
    large = item(text="x" * 500_000, send_at=iso(time.time() + ahead * 86400))
    result = Mailroom("test", payload_days=days).send(large)
    assert (result.ok, result.error.partition(":")[0]) == (good, "" if good else "send_at")


def test_a_stage_that_says_nothing_keeps_content_as_long_as_the_stacks_do_by_default(aws: Aws) -> None:
    large = item(text="x" * 500_000, send_at=iso(time.time() + 76 * 86400))
    assert Mailroom("test").send(large).error.startswith("send_at: lies beyond the 75 days")


def test_an_item_goes_when_its_stages_mailbox_would_let_it_go(aws: Aws) -> None:
    began = int(time.time())
    mailroom = Mailroom("test", mailbox_days=30)
    assert mailroom.send(item()).ok
    assert began <= aws.item(table=MAILBOX)["ttl"] - 30 * 86400 <= time.time()
    assert mailroom.send(item()).state == "existed"
    assert Mailroom("test").send(item()).state == "existed"


def test_another_bucket_may_be_named(aws: Aws) -> None:
    result = Mailroom("test", payload_bucket="no-such-bucket").send(item(text="x" * 500_000))
    assert (result.state, result.error) == ("failed", "PutObject: NoSuchBucket")


def test_a_session_says_whose_and_where(aws: Aws) -> None:
    elsewhere = Mailroom("test", boto3.Session(region_name="us-west-2"))
    assert elsewhere.send(item()) == SendResult("m-1", "mail", "failed", "PutItem: ResourceNotFoundException")


def test_many_are_sent_in_order_and_counted(mailroom: Mailroom, aws: Aws) -> None:
    mailroom.send(item(id="m-3"))
    mailroom.send(item(id="m-4", text="No"))
    done: list[int] = []
    heard: list[str] = []
    items = [*(item(id=f"m-{at}") for at in range(50)), item(id="")]
    summary = mailroom.send_many(items, done.append, on_result=lambda each: heard.append(each.id))
    counts = (summary.accepted, summary.existed, summary.conflict, summary.refused, summary.failed)
    assert counts == (48, 1, 1, 1, 0)
    assert summary.total == 51
    assert done == list(range(1, 52))
    assert heard == [*(f"m-{at}" for at in range(50)), ""]
    assert [(each.id, each.state) for each in summary.problems] == [("m-4", "conflict"), ("", "refused")]


def test_sending_many_again_sends_what_was_missing(mailroom: Mailroom, aws: Aws) -> None:
    items = [item(id=f"m-{at}") for at in range(20)]
    mailroom.send_many(items[:7])
    summary = mailroom.send_many(items)
    assert (summary.existed, summary.accepted) == (7, 13)


def test_of_many_only_a_few_are_ever_in_memory(mailroom: Mailroom, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = iter(range(1_000_000))

    def send(self: Mailroom, each: Any, **_: Any) -> SendResult:
        next(sent)
        return SendResult(each["id"], each["event_type"], "failed", "out of reach")

    taken = 0

    def items() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for at in range(5000):
            taken += 1
            yield item(id=str(at), text="x" * 20_000 + str(at))

    furthest = 0

    def watch(done: int) -> None:
        nonlocal furthest
        furthest = max(furthest, taken - done)

    monkeypatch.setattr(Mailroom, "send", send)
    tracemalloc.start()
    try:
        summary = mailroom.send_many(items(), watch)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert summary.failed == 5000
    assert len(summary.problems) == 1000
    assert furthest <= mailroom.workers * 4
    assert peak < 10_000_000  # all of them have 100 MB


def test_sending_none_is_a_summary_of_none(mailroom: Mailroom) -> None:
    assert mailroom.send_many([]) == Summary()


def test_a_status_is_ready_until_the_ledger_knows_better(mailroom: Mailroom, ledger: Ledger) -> None:
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


def test_an_id_of_several_messages_asks_which(mailroom: Mailroom, aws: Aws) -> None:
    mailroom.send(item())
    aws.put(LEDGER, id="m-1", event_type="sms", status="sent")
    with pytest.raises(Ambiguous, match="mail, sms") as caught:
        mailroom.status("m-1")
    assert caught.value.event_types == ["mail", "sms"]


def waiting(mailroom: Mailroom, **changes: Any) -> None:
    """A message that waits for its time."""
    assert mailroom.send(item(send_at=iso(time.time() + 3600), **changes)).ok


def test_what_waits_is_taken_back_and_status_says_so_at_once(
    mailroom: Mailroom, aws: Aws, ledger: Ledger
) -> None:
    waiting(mailroom, callback_url="https://shop.example/told")
    for _ in range(2):
        assert mailroom.cancel("m-1").status == "cancelled"
    found = mailroom.status("m-1")
    assert (found and found.status, found and found.error) == (
        "cancelled",
        {"code": "cancelled", "message": "it was taken back before its send_at"},
    )
    row = aws.item()
    assert (row["callback_url"], row["callbacks"], row["history"][0]["status"]) == (
        "https://shop.example/told",
        {},
        "cancelled",
    )
    assert row["ttl"] >= time.time() + 3600 + 90 * 86_400 - 60  # its schedule still fires
    assert type(ledger.claim(mail())).__name__ == "Completed"


def test_what_waits_with_its_content_is_taken_back_too(mailroom: Mailroom, ledger: Ledger) -> None:
    ledger.schedule(mail(), time.time() + 3600, "day_used_up", "it waits for the day's quota")
    assert mailroom.cancel("m-1").status == "cancelled"


@pytest.mark.parametrize("changes", [{}, {"send_at": "2020-01-01T00:00:00Z"}, {"send_at": "soon"}])
def test_what_waits_for_no_time_is_not_taken_back(
    mailroom: Mailroom, aws: Aws, changes: dict[str, Any]
) -> None:
    mailroom.send(item(**changes))
    with pytest.raises(NotCancelled, match=r"it is (ready|forgotten)") as raised:
        mailroom.cancel("m-1")
    assert raised.value.status is not None
    assert aws.item() == {}


def test_what_is_claimed_or_over_or_nowhere_is_not_taken_back(mailroom: Mailroom, ledger: Ledger) -> None:
    with pytest.raises(NotCancelled, match="there is no such message"):
        mailroom.cancel("m-1")
    claim = claimed(ledger)
    with pytest.raises(NotCancelled, match="it is sending"):
        mailroom.cancel("m-1")
    ledger.complete(claim, "ses", "0101")
    with pytest.raises(NotCancelled, match="it is sent"):
        mailroom.cancel("m-1", "mail")


def test_an_attachment_s_content_goes_into_the_stage_s_bucket_and_is_the_same_when_sent_again(
    aws: Aws,
) -> None:
    mailroom = Mailroom("test", payload_bucket=BUCKET)
    bill = {"content": b"%PDF", "filename": "bill.pdf", "content_type": "application/pdf"}
    sent = item(attachments=[bill, {"ref": f"s3://{BUCKET}/other"}])
    assert mailroom.send(sent).state == "accepted"
    assert mailroom.send(sent).state == "existed"
    mine, other = aws.item(table=MAILBOX)["attachments"]
    assert other == {"ref": f"s3://{BUCKET}/other"}
    assert (mine["filename"], mine["content_type"], "content" in mine) == (
        "bill.pdf",
        "application/pdf",
        False,
    )
    key = mine["ref"].removeprefix(f"s3://{BUCKET}/")
    assert aws.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"%PDF"


def test_content_that_the_bucket_does_not_take_leaves_the_item_unsent(aws: Aws) -> None:
    result = Mailroom("test", payload_bucket="nosuch").send(item(attachments=[{"content": b"x"}]))
    assert (result.state, result.error) == ("failed", "PutObject: NoSuchBucket")
    assert aws.item(table=MAILBOX) == {}
