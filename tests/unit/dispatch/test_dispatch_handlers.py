"""dispatch and release, as Lambda runs them."""

import time

import msgspec
import pytest

from mailroom.budget import Budget
from mailroom.clock import iso
from mailroom.ledger.waits import SHARDS
from tests.support.unit.events import failures, lambda_context, stream_event
from tests.support.unit.functions import HANDLERS, Load
from tests.support.unit.shared import BUDGETS, LEDGER, MAILBOX, Aws, image, item


@pytest.mark.parametrize(
    ("name", "variable"), [*zip(HANDLERS, ("ROUTES", "CONTENTS_TABLE", "QUEUE_URL"), strict=True)]
)
def test_a_handler_without_an_environment_variable_fails_at_its_start_and_names_the_variable(
    load: Load, monkeypatch: pytest.MonkeyPatch, name: str, variable: str
) -> None:
    monkeypatch.delenv(variable)
    with pytest.raises(msgspec.ValidationError, match=variable):
        load(name)


def test_dispatch_queues_new_items_and_records_invalid_items_with_the_reason(load: Load, aws: Aws) -> None:
    event = stream_event(
        image(**item(id="a")), image(**item(id="b", to="wrong")), image(**item(id="c", lane="bulk"))
    )
    assert load("dispatch")(event, lambda_context()) == {"batchItemFailures": []}
    assert [each["id"] for each in aws.bodies()] == ["a"]
    assert [each["id"] for each in aws.bodies("mail-bulk")] == ["c"]
    assert aws.item("b")["error"]["message"].startswith("to: 'wrong' is not a mail address")


@pytest.mark.parametrize("name", ["MODIFY", "REMOVE"])
def test_dispatch_ignores_changes_and_deletions_of_items(load: Load, aws: Aws, name: str) -> None:
    assert load("dispatch")(stream_event(image(**item()), name=name), lambda_context()) == {
        "batchItemFailures": []
    }
    assert aws.receive() == []


def test_dispatch_returns_the_sequence_numbers_of_unqueued_items(load: Load, aws: Aws) -> None:
    handler = load("dispatch")
    aws.sqs.delete_queue(QueueUrl=aws.urls["mail-bulk"])
    try:
        event = stream_event(
            *(image(**item(id=f"m-{at}", lane=("bulk", "normal")[at % 2])) for at in range(4))
        )
        assert failures(handler(event, lambda_context())) == ["100", "102"]
        assert sorted(each["id"] for each in aws.bodies()) == ["m-1", "m-3"]
    finally:
        aws.sqs.create_queue(QueueName="mailroom-test-mail-bulk")


def test_dispatch_accepts_binary_set_large_number_and_null_attributes_of_a_stream_record(
    load: Load, aws: Aws
) -> None:
    odd = {
        **image(**item()),
        "b": {"B": "AP8="},
        "ns": {"NS": ["2", "1"]},
        "n": {"N": "1E+100"},
        "nul": {"NULL": True},
    }
    assert failures(load("dispatch")(stream_event(odd), lambda_context())) == []
    assert aws.bodies()[0]["b"] == "AP8="


def test_release_queues_due_messages_and_cancels_messages_whose_item_was_deleted(
    load: Load, aws: Aws
) -> None:
    send_at = iso(time.time() + 3600)
    event = stream_event(*(image(**item(id=each, send_at=send_at)) for each in ("a", "b")))
    load("dispatch")(event, lambda_context())
    assert [aws.item(each)["status"] for each in ("a", "b")] == ["scheduled", "scheduled"]
    due = image(due=int(time.time()) - 1)["due"]
    for each in ("a", "b"):
        aws.dynamodb.update_item(
            TableName=LEDGER,
            Key=image(id=each, event_type="mail"),
            UpdateExpression="SET waits_at = :due",
            ExpressionAttributeValues={":due": due},
        )
    aws.put(MAILBOX, **item(id="a", send_at=iso(time.time() - 1)))  # the time of the message has come
    release = load("release")
    for shard in range(SHARDS):
        release({"shard": shard}, lambda_context())
    assert [each["id"] for each in aws.bodies()] == ["a"]
    assert aws.item("b")["status"] == "cancelled"


def test_release_closes_a_channels_empty_waiting_line(load: Load, aws: Aws) -> None:
    Budget(aws.dynamodb, BUDGETS, "mail", [("0001-01-01", 1)]).join(time.time())
    load("release")({"line": "mail"}, lambda_context())
    (found,) = [each for each in aws.dynamodb.scan(TableName=BUDGETS)["Items"] if each["name"]["S"] == "mail"]
    assert "line_at" not in found
