"""The doubles of the tests refuse calls that AWS refuses."""

from typing import Any

import pytest

from tests.support.bounds import MAX_BYTES, BoundBroken, check_call
from tests.support.faults.outside import Bus, Clock, Queues
from tests.support.unit.shared import Aws

QUEUE, FIFO = "https://sqs.example/q", "https://sqs.example/q.fifo"
SENT = {"Id": "0", "MessageBody": "{}"}
LARGE = {"DataType": "String", "StringValue": "x" * MAX_BYTES}


def batch(*changes: dict[str, Any], url: str = QUEUE) -> dict[str, Any]:
    return {"QueueUrl": url, "Entries": [SENT | {"Id": str(n)} | change for n, change in enumerate(changes)]}


@pytest.mark.parametrize(
    ("operation", "parameters", "code"),
    [
        (
            "SendMessage",
            {"QueueUrl": QUEUE, "MessageBody": "{}", "DelaySeconds": 901},
            "InvalidParameterValue",
        ),
        ("SendMessage", {"QueueUrl": QUEUE, "MessageBody": "x" * (MAX_BYTES + 1)}, "BatchRequestTooLong"),
        ("SendMessageBatch", batch(), "EmptyBatchRequest"),
        ("SendMessageBatch", batch(*[{}] * 11), "TooManyEntriesInBatchRequest"),
        ("SendMessageBatch", batch({}, {"Id": "0"}), "BatchEntryIdsNotDistinct"),
        ("SendMessageBatch", batch({"DelaySeconds": -1}), "InvalidParameterValue"),
        ("SendMessageBatch", batch(*[{"MessageBody": "é" * (MAX_BYTES // 4)}] * 3), "BatchRequestTooLong"),
        ("SendMessageBatch", batch({}, url=FIFO), "MissingParameter"),
        (
            "SendMessageBatch",
            batch({"MessageGroupId": "+1", "DelaySeconds": 1}, url=FIFO),
            "InvalidParameterValue",
        ),
        (
            "ChangeMessageVisibility",
            {"QueueUrl": QUEUE, "VisibilityTimeout": 43_201},
            "InvalidParameterValue",
        ),
        ("ChangeMessageVisibilityBatch", batch({"VisibilityTimeout": 43_201}), "InvalidParameterValue"),
        ("DeleteMessageBatch", {"QueueUrl": QUEUE, "Entries": []}, "EmptyBatchRequest"),
        ("ReceiveMessage", {"QueueUrl": QUEUE, "MaxNumberOfMessages": 11}, "InvalidParameterValue"),
        ("ReceiveMessage", {"QueueUrl": QUEUE, "WaitTimeSeconds": 21}, "InvalidParameterValue"),
        ("SendMessageBatch", batch({"MessageAttributes": {"large": LARGE}}), "BatchRequestTooLong"),
    ],
)
def test_the_check_of_calls_refuses_a_call_beyond_the_limits_of_sqs(
    operation: str, parameters: dict[str, Any], code: str
) -> None:
    with pytest.raises(BoundBroken, match=code):
        check_call("sqs", operation, parameters)


def test_the_check_of_calls_accepts_a_call_at_the_limits_of_sqs() -> None:
    at_most = {"DelaySeconds": 900, "VisibilityTimeout": 43_200, "MessageBody": "x" * (MAX_BYTES // 10)}
    check_call("sqs", "SendMessageBatch", batch(*[at_most] * 10))


def test_the_queues_and_the_bus_of_the_crash_tests_refuse_calls_beyond_the_limits_of_aws() -> None:
    queues = Queues(Clock(), 30, 3)
    with pytest.raises(BoundBroken):
        queues.send_message_batch(**batch({"DelaySeconds": 901}))
    with pytest.raises(BoundBroken):
        queues.change_message_visibility_batch(
            QueueUrl=QUEUE, Entries=[{"Id": "0", "ReceiptHandle": "m1", "VisibilityTimeout": 43_201}]
        )
    with pytest.raises(BoundBroken):
        Bus().put_events(Entries=[{"Detail": '{"event_id": "e"}'}] * 11)


def test_the_sqs_client_of_the_unit_tests_refuses_a_call_beyond_the_limits_of_aws(aws: Aws) -> None:
    with pytest.raises(BoundBroken, match="InvalidParameterValue"):
        aws.sqs.send_message(QueueUrl=FIFO, MessageBody="{}", MessageGroupId="+1", DelaySeconds=1)
