"""Puts into the mailbox, and what became of each."""

from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from mailroom.aws.dynamo_values import plain
from mailroom.errors import Invalid
from mailroom.mailbox import MailboxWriter
from tests.support.unit.shared import MAILBOX, NOW, RUNS, Aws, FakeClock, before_each_call, item


@pytest.fixture
def writer(aws: Aws, clock: FakeClock) -> MailboxWriter:
    return MailboxWriter(aws.dynamodb, MAILBOX, clock=clock)


def test_an_item_is_put_once(writer: MailboxWriter, aws: Aws) -> None:
    assert writer.put(item()).state == "accepted"
    assert writer.put(item()).state == "existed"


def test_another_message_of_that_id_stays_and_is_a_conflict(writer: MailboxWriter, aws: Aws) -> None:
    writer.put(item())
    other = writer.put(item(text="No"))
    assert (other.state, other.field) == ("conflict", "id")
    assert other.error == "id: is used for another message; use a new one"
    assert aws.item(table=MAILBOX) == item()


def test_an_item_is_replaced_where_that_is_asked_for(writer: MailboxWriter, aws: Aws) -> None:
    writer.put(item())
    assert writer.put(item(text="No"), if_new=False).state == "accepted"
    assert aws.item(table=MAILBOX)["text"] == "No"


def test_the_same_in_another_spelling_is_the_same(writer: MailboxWriter) -> None:
    writer.put(item(n=1.0, many={"a", "b"}))
    assert writer.put(item(n=Decimal("1.00"), many={"b", "a"})).state == "existed"
    assert writer.put(item(n=1, many={"a", "b"})).state == "existed"
    assert writer.put(item(n=True, many={"a", "b"})).state == "conflict"


def test_an_item_with_the_mark_of_a_restored_one_is_refused_because_nobody_would_send_it(
    writer: MailboxWriter, aws: Aws
) -> None:
    marked = item(restored_id="m-1")
    written = writer.put(marked)
    assert (written.state, written.field) == ("refused", "restored_id")
    with pytest.raises(Invalid, match="restored_id: is the system's own"):
        writer.entry(marked)
    assert aws.item(table=MAILBOX) == {}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"text": "x" * 420_000}, "item"),
        ({"id": ""}, "item"),
        ({"v": object()}, "v"),
        ({"v": float("nan")}, "v"),
    ],
)
def test_what_dynamodb_cannot_hold_is_refused_in_a_sentence(
    writer: MailboxWriter, changes: dict[str, Any], field: str
) -> None:
    written = writer.put(item(**changes))
    assert (written.state, written.field) == ("refused", field)
    assert written.error == f"{field}: {written.problem}"


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "ThrottlingException", "Message": "for ada@x.example"}}, "PutItem"),
        ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "PutItem"),
        ReadTimeoutError(endpoint_url="https://x.example"),
    ],
)
def test_an_outage_is_no_verdict(
    writer: MailboxWriter, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(_operation: str) -> None:
        raise error

    before_each_call(monkeypatch, fail)
    written = writer.put(item())
    assert written.state == "failed"
    assert written.error
    assert "ada" not in written.error


@pytest.mark.parametrize("workers", [1, 4])
def test_many_are_put_and_told_in_their_order(writer: MailboxWriter, workers: int) -> None:
    items = [item(id=f"m-{at}") for at in range(20)]
    writer.put(items[7])
    states = [each.state for each in writer.put_all([*items, item(v=object())], workers)]
    assert states == [*["accepted"] * 7, "existed", *["accepted"] * 12, "refused"]


def test_nothing_to_put_is_nothing(writer: MailboxWriter) -> None:
    assert writer.put_all([], 4) == []


def test_an_item_without_a_ttl_gets_the_mailboxs(aws: Aws, clock: FakeClock) -> None:
    writer = MailboxWriter(aws.dynamodb, MAILBOX, 3600, clock=clock)
    given = item()
    writer.put(given)
    assert "ttl" not in given
    assert aws.item(table=MAILBOX)["ttl"] == NOW + 3600
    clock.advance(60)
    assert writer.put(item()).state == "existed"


def test_an_item_that_waits_stays_until_its_time_and_then_as_long_as_any(aws: Aws, clock: FakeClock) -> None:
    writer = MailboxWriter(aws.dynamodb, MAILBOX, 3600, clock=clock)
    writer.put(item(send_at="2026-11-22T09:00:00Z"))
    assert aws.item(table=MAILBOX)["ttl"] == NOW + 86400 + 3600
    writer.put(item(id="odd", send_at="tomorrow"))
    assert aws.item("odd", table=MAILBOX)["ttl"] == NOW + 3600


def test_an_items_own_ttl_is_part_of_it(aws: Aws, clock: FakeClock) -> None:
    writer = MailboxWriter(aws.dynamodb, MAILBOX, 3600, clock=clock)
    writer.put(item(ttl=5))
    assert aws.item(table=MAILBOX)["ttl"] == 5
    assert writer.put(item(ttl=6)).state == "conflict"


@pytest.mark.parametrize("says", [..., None])
def test_an_item_that_says_no_ttl_is_the_same_whatever_ttl_stands_there(
    writer: MailboxWriter, aws: Aws, clock: FakeClock, says: Any
) -> None:
    """As where a mailbox came to keep everything, or another of its producers adds a ttl."""
    MailboxWriter(aws.dynamodb, MAILBOX, 3600, clock=clock).put(item())
    assert writer.put(item(ttl=says)).state == "existed"
    assert writer.put(item(ttl=says, text="No")).state == "conflict"
    assert writer.put(item(ttl=int(NOW) + 3601)).state == "conflict"


def test_an_item_whose_ttl_is_null_gets_the_mailboxs_as_well(aws: Aws, clock: FakeClock) -> None:
    writer = MailboxWriter(aws.dynamodb, MAILBOX, 3600, clock=clock)
    writer.put(item(ttl=None))
    assert aws.item(table=MAILBOX)["ttl"] == NOW + 3600
    assert writer.put(item(ttl=None)).state == "existed"


@pytest.mark.parametrize("ttl", [None, 0])
def test_a_mailbox_may_keep_everything(aws: Aws, ttl: float | None) -> None:
    MailboxWriter(aws.dynamodb, MAILBOX, ttl).put(item())
    assert "ttl" not in aws.item(table=MAILBOX)


def test_a_transaction_that_is_made_again_commits_once_and_finds_its_own_message(
    aws: Aws, clock: FakeClock
) -> None:
    """The entry made anew has another ttl, so its condition answers, and not a token of the first call."""
    writer = MailboxWriter(aws.dynamodb, MAILBOX, 3600, clock=clock)
    key = {"campaign": {"S": "order"}, "run": {"S": "42"}}

    def order() -> Any:
        sold = {"TableName": RUNS, "Key": key, "UpdateExpression": "ADD sold :one"}
        update: Any = {"Update": {**sold, "ExpressionAttributeValues": {":one": {"N": "1"}}}}
        return aws.dynamodb.transact_write_items(TransactItems=[update, writer.entry(item())])

    order()
    for _ in range(2):
        clock.advance(3601)
        with pytest.raises(aws.dynamodb.exceptions.TransactionCanceledException) as cancelled:
            order()
        reasons = cancelled.value.response["CancellationReasons"]
        assert [each["Code"] for each in reasons] == ["None", "ConditionalCheckFailed"]
        assert plain(reasons[1]["Item"]) == {**item(), "ttl": NOW + 3600}
    assert aws.dynamodb.get_item(TableName=RUNS, Key=key)["Item"]["sold"] == {"N": "1"}
    assert (writer.put(item()).state, writer.put(item(text="No")).state) == ("existed", "conflict")
