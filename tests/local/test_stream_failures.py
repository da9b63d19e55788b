"""Objects in S3 for records that a stream gave up on."""

import json
import re
from datetime import UTC, datetime

from mailroom_local.pump.driver import RETRIES_EXHAUSTED, failure_document, object_key
from mailroom_local.pump.streams import GivenUp
from tests.support.local.stream import MAPPING, NOW, RAISED, stream_record

SHARD = "shardId-00000000000000000000-00000000"
WHEN = datetime.fromtimestamp(NOW + 60.5, UTC)


def test_the_s3_key_of_a_failed_stream_batch_has_its_mapping_its_shard_and_its_time() -> None:
    key = object_key(MAPPING, SHARD, WHEN)
    assert re.fullmatch(
        rf"aws/lambda/{MAPPING.uuid}/{SHARD}/2027/01/15/2027-01-15T08\.01\.00-[0-9a-f-]{{36}}", key
    )


def test_the_stored_document_of_a_failed_stream_batch_has_its_cause_and_its_position() -> None:
    lost = (stream_record(7), stream_record(8, NOW + 1))
    made = failure_document(MAPPING, SHARD, GivenUp(lost, RAISED, 3), WHEN)
    assert made["requestContext"] == {
        "requestId": "request",
        "functionArn": MAPPING.function,
        "condition": RETRIES_EXHAUSTED,
        "approximateInvokeCount": 3,
    }
    assert made["responseContext"]["functionError"] == "Unhandled"
    assert made["DDBStreamBatchInfo"] == {
        "shardId": SHARD,
        "startSequenceNumber": "7",
        "endSequenceNumber": "8",
        "approximateArrivalOfFirstRecord": "2027-01-15T08:00:00Z",
        "approximateArrivalOfLastRecord": "2027-01-15T08:00:01Z",
        "batchSize": 2,
        "streamArn": MAPPING.stream,
    }
    assert (made["timestamp"], made["version"]) == ("2027-01-15T08:01:00.500Z", "1.0")


def test_the_document_of_a_failed_batch_has_the_functions_event_as_a_json_string() -> None:
    made = failure_document(MAPPING, SHARD, GivenUp((stream_record(7),), RAISED, 3), WHEN)
    event = json.loads(json.loads(json.dumps(made))["payload"])
    assert [each["eventID"] for each in event["Records"]] == ["7"]
