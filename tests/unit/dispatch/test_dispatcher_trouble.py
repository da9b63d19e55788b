"""Dispatch returns only the records as failed that AWS refused."""

from collections.abc import Callable
from typing import Any

from tests.support.unit.dispatching import Counted, Log, dispatcher_of, numbered
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.shared import Aws, FakeClock, item


def test_dispatch_reports_as_failed_only_the_item_that_sqs_refuses(aws: Aws, clock: FakeClock) -> None:
    def refusing(real: Callable[..., Any], **arguments: Any) -> Any:
        bad = [each for each in arguments["Entries"] if '"b"' in each["MessageBody"]]
        good = [each for each in arguments["Entries"] if each not in bad]
        reply = real(QueueUrl=arguments["QueueUrl"], Entries=good) if good else {}
        return {**reply, "Failed": [{"Id": each["Id"], "Code": "InternalError"} for each in bad]}

    client = Meddler(aws.sqs, send_message_batch=refusing)
    items = numbered(item(id="a"), item(id="b"), item(id="c"))
    assert dispatcher_of(aws, clock, sqs=client).dispatch(items) == {"101"}
    assert sorted(each["id"] for each in aws.bodies()) == ["a", "c"]


def test_an_outage_of_one_queue_does_not_stop_the_messages_for_another_queue(
    aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    def down(real: Callable[..., Any], **arguments: Any) -> Any:
        if arguments["QueueUrl"] == aws.urls["mail-bulk"]:
            raise client_error("ServiceUnavailable", status=503)
        return real(**arguments)

    client = Meddler(aws.sqs, send_message_batch=down)
    items = numbered(item(id="a", lane="bulk"), item(id="b"))
    assert dispatcher_of(aws, clock, sqs=client).dispatch(items) == {"100"}
    assert [each["id"] for each in aws.bodies()] == ["b"]
    assert counted()["Dispatched"] == 1


def test_dispatch_reports_as_failed_only_the_item_whose_refusal_the_ledger_cannot_record(
    aws: Aws, clock: FakeClock, log: Log
) -> None:
    dynamodb = Meddler(
        aws.dynamodb, update_item=failing(client_error("ProvisionedThroughputExceededException"))
    )
    items = numbered(item(id="a", to="wrong"), item(id="b", to="wrong"), item(id="c"))
    assert dispatcher_of(aws, clock, dynamodb=dynamodb).dispatch(items) == {"100"}
    assert (aws.item("a"), aws.item("b")["status"]) == ({}, "failed")
    assert [each["id"] for each in aws.bodies()] == ["c"]
    assert log()[0]["message"] == "not dispatched; it is tried again"
    assert (log()[0]["id"], log()[0]["event_type"]) == ("a", "mail")


def test_dispatch_does_not_call_dynamodb_for_a_message_that_is_queued_at_once(
    aws: Aws, clock: FakeClock
) -> None:
    dynamodb = Meddler(aws.dynamodb)
    dispatcher_of(aws, clock, dynamodb=dynamodb).dispatch(numbered(item(id="a"), item(id="b")))
    assert dynamodb.calls == []
