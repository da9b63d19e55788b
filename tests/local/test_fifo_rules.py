"""Lambda's rules for queues, as the pump keeps them: mapping, event, and what is deleted."""

from typing import Any

import pytest

from mailroom_local.pump.fifo import AT_MOST, FifoMapping, FifoMessage, finished
from mailroom_local.pump.functions import Invoked
from tests.support.local.fifo import ARN, RAISED, fifo_message, invoked_with_failures, names

BATCH = [fifo_message("a"), fifo_message("b"), fifo_message("c")]
LISTED: dict[str, Any] = {
    "UUID": "u",
    "FunctionArn": "f",
    "EventSourceArn": ARN,
    "BatchSize": 1,
    "ScalingConfig": {"MaximumConcurrency": 3},
}
RECEIVED: dict[str, Any] = {
    "MessageId": "m",
    "ReceiptHandle": "r",
    "Body": "{}",
    "MD5OfBody": "99914b932bd37a50b983c5e7c90ae93b",
    "Attributes": {
        "ApproximateReceiveCount": "2",
        "SentTimestamp": "1800000000000",
        "MessageGroupId": "+16175551234",
        "MessageDeduplicationId": "d",
        "SequenceNumber": "00000000000000000001",
    },
    "MessageAttributes": {
        "channel": {"DataType": "String", "StringValue": "fax"},
        "blob": {"DataType": "Binary", "BinaryValue": b"\x00\x01"},
    },
}


@pytest.mark.parametrize("payload", [None, "", {}, {"batchItemFailures": []}, {"batchItemFailures": None}])
def test_the_pump_deletes_all_messages_of_a_batch_after_a_response_without_failures(payload: object) -> None:
    assert finished(BATCH, Invoked("request", payload)) == BATCH


def test_the_pump_keeps_the_messages_that_a_functions_response_reports_as_failed() -> None:
    assert names(finished(BATCH, invoked_with_failures("b"))) == ["a", "c"]


@pytest.mark.parametrize("invoked", [RAISED, Invoked(refused=True)])
def test_the_pump_keeps_all_messages_of_a_batch_after_an_error_or_a_refused_invocation(
    invoked: Invoked,
) -> None:
    assert finished(BATCH, invoked) == []


@pytest.mark.parametrize("identifier", ["", None, "z"])
def test_the_pump_keeps_all_messages_if_the_response_reports_an_identifier_outside_the_batch(
    identifier: object,
) -> None:
    assert finished(BATCH, invoked_with_failures("a", identifier)) == []


def test_the_pump_reads_the_function_the_queue_the_batch_size_and_the_concurrency_of_a_mapping() -> None:
    mapping = FifoMapping.from_api(LISTED)
    assert (mapping.function, mapping.queue) == ("f", ARN)
    assert (mapping.batch_size, mapping.concurrency) == (1, 3)


@pytest.mark.parametrize("scaling", [None, {}, {"MaximumConcurrency": 1000}])
def test_the_concurrency_of_a_mapping_is_limited_to_that_of_the_local_stage(scaling: object) -> None:
    assert FifoMapping.from_api(LISTED | {"ScalingConfig": scaling}).concurrency == AT_MOST


def test_a_fifo_message_reaches_the_function_as_a_record_of_the_form_that_lambda_uses() -> None:
    assert FifoMessage.received(RECEIVED, ARN).record == {
        "messageId": "m",
        "receiptHandle": "r",
        "body": "{}",
        "attributes": RECEIVED["Attributes"],
        "messageAttributes": {
            "channel": {
                "stringValue": "fax",
                "stringListValues": [],
                "binaryListValues": [],
                "dataType": "String",
            },
            "blob": {
                "binaryValue": "AAE=",
                "stringListValues": [],
                "binaryListValues": [],
                "dataType": "Binary",
            },
        },
        "md5OfBody": "99914b932bd37a50b983c5e7c90ae93b",
        "eventSource": "aws:sqs",
        "eventSourceARN": ARN,
        "awsRegion": "us-east-1",
    }
