"""Mappings as the API lists them, records as the stream gives them, and the filters between the two."""

import json
import queue
import threading
from typing import Any

import pytest

from mailroom_local.pump.driver import ShardLane
from mailroom_local.pump.streams import Record, StreamMapping, passes
from tests.support.local.stream import records

LISTED: dict[str, Any] = {
    "UUID": "u",
    "FunctionArn": "f",
    "EventSourceArn": "arn:aws:dynamodb:us-east-1:000000000000:table/mailbox/stream/1",
    "BatchSize": 25,
    "MaximumRetryAttempts": 3,
    "ParallelizationFactor": 2,
    "DestinationConfig": {"OnFailure": {"Destination": "arn:aws:s3:::unprocessed"}},
    "FilterCriteria": {"Filters": [{"Pattern": '{"eventName": ["INSERT"]}'}]},
}
INSERTED: dict[str, Any] = {
    "eventID": "1",
    "eventName": "INSERT",
    "dynamodb": {
        "ApproximateCreationDateTime": 1795219200,
        "Keys": {"id": {"S": "a"}},
        "NewImage": {"id": {"S": "a"}, "blob": {"B": "AAE="}},
        "SequenceNumber": "111",
    },
}


def test_the_pump_reads_the_limits_the_filters_and_the_failures_bucket_of_a_stream_mapping() -> None:
    mapping = StreamMapping.from_api(LISTED)
    assert (mapping.batch_size, mapping.max_retries, mapping.parallel) == (25, 3, 2)
    assert (mapping.failures_bucket, mapping.patterns) == ("unprocessed", ({"eventName": ["INSERT"]},))


def test_a_stream_record_reaches_the_function_in_the_form_that_lambda_uses() -> None:
    event = json.loads(Record.from_stream(INSERTED, "arn:stream").text)
    assert event["eventSourceARN"] == "arn:stream"
    assert event["dynamodb"]["NewImage"]["blob"] == {"B": "AAE="}
    assert event["dynamodb"]["ApproximateCreationDateTime"] == 1795219200


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"eventName": ["INSERT"]}, True),
        ({"eventName": ["MODIFY", "REMOVE"]}, False),
        ({"dynamodb": {"NewImage": {"id": {"S": [{"anything-but": "b"}]}}}}, True),
        ({"dynamodb": {"OldImage": {"id": {"S": ["a"]}}}}, False),
        ({"dynamodb": {"NewImage": {"lane": {"S": [{"exists": False}]}}}}, False),
        ({"eventName": [{"anything-but": ["REMOVE"]}]}, True),
        ({"userIdentity": [{"exists": False}]}, True),
    ],
)
def test_the_filters_of_a_stream_select_records_by_their_pattern(
    pattern: dict[str, Any], expected: bool
) -> None:
    assert passes(INSERTED, [pattern]) is expected


def test_a_stream_record_reaches_the_function_if_any_filter_matches_or_the_mapping_has_none() -> None:
    assert passes(INSERTED, [{"eventName": ["REMOVE"]}, {"eventName": ["INSERT"]}])
    assert passes(INSERTED, [])


def test_an_unknown_operator_in_a_stream_filter_raises_an_error() -> None:
    with pytest.raises(ValueError, match="numeric"):
        passes(INSERTED, [{"eventID": [{"numeric": [">", 0]}]}])


def test_records_that_arrive_during_a_delivery_are_delivered_in_full_batches() -> None:
    delivered: queue.Queue[list[Record]] = queue.Queue()
    may_end = threading.Semaphore(0)

    def deliver(batch: list[Record]) -> None:
        delivered.put(batch)
        may_end.acquire()

    lane = ShardLane(batch_size=3, deliver=deliver)
    first, *others = records(0, 1, 2, 3, 4)
    lane.put(first)
    assert delivered.get(timeout=5) == [first]
    for each in others:
        lane.put(each)
    may_end.release(3)
    assert [delivered.get(timeout=5), delivered.get(timeout=5)] == [others[:3], others[3:]]
