"""Puts into the mailbox, and their results."""

from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from mailroom.aws.dynamo_values import plain
from mailroom.errors import Invalid
from mailroom.mailbox import MailboxWriter, Oversize
from tests.support.unit.shared import BUCKET, MAILBOX, NOW, RUNS, Aws, FakeClock, before_each_call, item


@pytest.fixture
def writer(aws: Aws, clock: FakeClock) -> MailboxWriter:
    return MailboxWriter(aws.dynamodb, MAILBOX, clock=clock)


def test_a_put_with_if_new_false_replaces_the_stored_item(writer: MailboxWriter, aws: Aws) -> None:
    writer.put(item())
    assert writer.put(item(text="No"), if_new=False).state == "accepted"
    assert aws.item(table=MAILBOX)["text"] == "No"


def test_a_put_of_an_equal_item_in_another_form_gets_the_state_existed(writer: MailboxWriter) -> None:
    writer.put(item(n=1.0, many={"a", "b"}))
    assert writer.put(item(n=Decimal("1.00"), many={"b", "a"})).state == "existed"
    assert writer.put(item(n=1, many={"a", "b"})).state == "existed"
    assert writer.put(item(n=True, many={"a", "b"})).state == "conflict"


def test_an_item_with_the_reserved_attribute_restored_id_is_refused(writer: MailboxWriter, aws: Aws) -> None:
    marked = item(restored_id="m-1")
    written = writer.put(marked)
    assert (written.state, written.field) == ("refused", "restored_id")
    with pytest.raises(Invalid, match="restored_id: is reserved for Mailroom"):
        writer.entry(marked)
    assert aws.item(table=MAILBOX) == {}


# Messages of campaigns


@pytest.fixture
def composing(aws: Aws, clock: FakeClock) -> MailboxWriter:
    """The writer of the function `compose`."""
    return MailboxWriter(aws.dynamodb, MAILBOX, 3600, clock=clock, composes=True)


def composed_item(start: int, **changes: Any) -> dict[str, Any]:
    return item(
        id="weekly#r#ada", campaign_start={"campaign": "weekly", "run": "r", "start": start}, **changes
    )


@pytest.mark.parametrize("start", [{"campaign": "weekly", "run": "r", "start": 1}, None, "weekly"])
def test_a_producers_item_with_the_reserved_attribute_campaign_start_is_refused(
    writer: MailboxWriter, aws: Aws, start: Any
) -> None:
    marked = item(campaign_start=start)
    for written in (writer.put(marked), writer.put(marked, if_new=False), writer.replace(marked)[0]):
        assert (written.state, written.field) == ("refused", "campaign_start")
    with pytest.raises(Invalid, match="campaign_start: is reserved for Mailroom"):
        writer.entry(marked)
    assert aws.dynamodb.scan(TableName=MAILBOX)["Count"] == 0


def test_a_put_of_a_stored_item_gets_the_state_existed_even_if_its_run_was_started_again(
    composing: MailboxWriter,
) -> None:
    assert composing.put(composed_item(1)).state == "accepted"
    assert composing.put(composed_item(2)).state == "existed"
    assert composing.put(composed_item(2, text="No")).state == "conflict"


def test_an_item_of_a_runs_later_start_replaces_the_item_of_an_earlier_start(
    composing: MailboxWriter, aws: Aws
) -> None:
    composing.put(composed_item(1))
    result, queued = composing.replace(composed_item(2, text="No", attempt=2))
    stored = aws.item("weekly#r#ada", table=MAILBOX)
    assert (result.state, queued) == ("existed", stored)
    assert (stored["text"], stored["attempt"], stored["campaign_start"]["start"]) == ("No", 2, 2)
    assert stored["ttl"] == NOW + 3600


@pytest.mark.parametrize(("text", "state"), [("Yes", "existed"), ("No", "conflict")])
def test_a_stored_item_of_the_same_start_of_a_run_is_not_replaced_and_is_returned_to_be_queued(
    composing: MailboxWriter, aws: Aws, text: str, state: str
) -> None:
    composing.put(composed_item(2, text="Yes"))
    result, queued = composing.replace(composed_item(2, text=text))
    assert (result.state, queued) == (state, aws.item("weekly#r#ada", table=MAILBOX))
    assert queued is not None
    assert queued["text"] == "Yes"


def test_a_replacement_of_a_runs_item_is_accepted_if_the_mailbox_lacks_the_item(
    composing: MailboxWriter,
) -> None:
    result, queued = composing.replace(composed_item(2))
    assert (result.state, queued) == ("accepted", None)


@pytest.mark.parametrize(
    "stored", [composed_item(3), item(id="weekly#r#ada")], ids=["newer", "of a producer"]
)
def test_a_stored_item_of_a_runs_newer_start_or_of_a_producer_is_not_replaced(
    composing: MailboxWriter, aws: Aws, stored: dict[str, Any]
) -> None:
    composing.put(stored)
    before = aws.item("weekly#r#ada", table=MAILBOX)
    result, queued = composing.replace(composed_item(2, text="No"))
    assert (result.state, queued) == ("conflict", None)
    assert aws.item("weekly#r#ada", table=MAILBOX) == before


def test_a_replacement_during_an_outage_gets_the_state_failed(
    composing: MailboxWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_operation: str) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException"}}, "PutItem")

    before_each_call(monkeypatch, fail)
    assert composing.replace(composed_item(2))[0].state == "failed"


def test_an_item_whose_content_is_moved_to_s3_keeps_its_campaign_start_in_the_mailbox(
    aws: Aws, clock: FakeClock
) -> None:
    oversize = Oversize(aws.s3, lambda: BUCKET, clock=clock)
    writer = MailboxWriter(aws.dynamodb, MAILBOX, oversize=oversize, clock=clock, composes=True)
    assert writer.put(composed_item(1, text="x" * 420_000)).state == "accepted"
    stored = aws.item("weekly#r#ada", table=MAILBOX)
    assert (stored["campaign_start"], "text" in stored) == (composed_item(1)["campaign_start"], False)


# Items that cannot be stored


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"text": "x" * 420_000}, "item"),
        ({"id": ""}, "item"),
        ({"v": object()}, "v"),
        ({"v": float("nan")}, "v"),
    ],
)
def test_an_item_that_dynamodb_cannot_store_is_refused_with_the_reason(
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
def test_a_put_during_an_outage_gets_the_state_failed_instead_of_refused(
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
def test_the_results_of_many_puts_have_the_order_of_their_items(writer: MailboxWriter, workers: int) -> None:
    items = [item(id=f"m-{number}") for number in range(20)]
    writer.put(items[7])
    states = [written.state for written in writer.put_all([*items, item(v=object())], workers)]
    assert states == [*["accepted"] * 7, "existed", *["accepted"] * 12, "refused"]


@pytest.mark.parametrize("ttl", [{}, {"ttl": None}])
def test_an_item_without_a_ttl_gets_the_ttl_of_the_mailbox(
    aws: Aws, clock: FakeClock, ttl: dict[str, None]
) -> None:
    writer = MailboxWriter(aws.dynamodb, MAILBOX, 3600, clock=clock)
    message = item(**ttl)
    writer.put(message)
    assert message == item(**ttl)
    assert aws.item(table=MAILBOX)["ttl"] == NOW + 3600
    clock.advance(60)
    assert writer.put(message).state == "existed"


def test_the_ttl_of_a_waiting_item_counts_from_its_send_at(aws: Aws, clock: FakeClock) -> None:
    writer = MailboxWriter(aws.dynamodb, MAILBOX, 3600, clock=clock)
    writer.put(item(send_at="2026-11-22T09:00:00Z"))
    assert aws.item(table=MAILBOX)["ttl"] == NOW + 86400 + 3600
    writer.put(item(id="invalid", send_at="tomorrow"))
    assert aws.item("invalid", table=MAILBOX)["ttl"] == NOW + 3600


def test_a_put_that_differs_from_the_stored_item_only_in_its_ttl_gets_the_state_conflict(
    aws: Aws, clock: FakeClock
) -> None:
    writer = MailboxWriter(aws.dynamodb, MAILBOX, 3600, clock=clock)
    writer.put(item(ttl=5))
    assert aws.item(table=MAILBOX)["ttl"] == 5
    assert writer.put(item(ttl=6)).state == "conflict"


@pytest.mark.parametrize("ttl", [..., None])
def test_a_put_without_a_ttl_gets_the_state_existed_if_the_equal_stored_item_has_a_ttl(
    writer: MailboxWriter, aws: Aws, clock: FakeClock, ttl: Any
) -> None:
    """The stage's setting may have changed, or another producer may set a ttl."""
    MailboxWriter(aws.dynamodb, MAILBOX, 3600, clock=clock).put(item())
    assert writer.put(item(ttl=ttl)).state == "existed"
    assert writer.put(item(ttl=ttl, text="No")).state == "conflict"
    assert writer.put(item(ttl=int(NOW) + 3601)).state == "conflict"


@pytest.mark.parametrize("ttl", [None, 0])
def test_a_writer_whose_ttl_is_missing_or_zero_stores_items_without_a_ttl(
    aws: Aws, ttl: float | None
) -> None:
    MailboxWriter(aws.dynamodb, MAILBOX, ttl).put(item())
    assert "ttl" not in aws.item(table=MAILBOX)


def test_a_repeated_transaction_with_a_mailbox_entry_is_cancelled_and_returns_the_stored_item(
    aws: Aws, clock: FakeClock
) -> None:
    """The second entry has another ttl, so its condition decides, and not the token of the first call."""
    writer = MailboxWriter(aws.dynamodb, MAILBOX, 3600, clock=clock)
    key = {"campaign": {"S": "order"}, "run": {"S": "42"}}

    def order() -> Any:
        sale = {"TableName": RUNS, "Key": key, "UpdateExpression": "ADD sold :one"}
        update: Any = {"Update": {**sale, "ExpressionAttributeValues": {":one": {"N": "1"}}}}
        return aws.dynamodb.transact_write_items(TransactItems=[update, writer.entry(item())])

    order()
    for _ in range(2):
        clock.advance(3601)
        with pytest.raises(aws.dynamodb.exceptions.TransactionCanceledException) as cancelled:
            order()
        reasons = cancelled.value.response["CancellationReasons"]
        assert [reason["Code"] for reason in reasons] == ["None", "ConditionalCheckFailed"]
        assert plain(reasons[1]["Item"]) == {**item(), "ttl": NOW + 3600}
    assert aws.dynamodb.get_item(TableName=RUNS, Key=key)["Item"]["sold"] == {"N": "1"}
    assert (writer.put(item()).state, writer.put(item(text="No")).state) == ("existed", "conflict")
