"""Turns requests into work: new mailbox items in, queue messages out."""

from typing import Any

from mailroom import environment
from mailroom.aws.dynamo import plain
from mailroom.dispatch.dispatcher import Dispatcher
from mailroom.environment import DispatchSettings
from mailroom.telemetry import instrumented

dispatcher = Dispatcher.of(environment.read(DispatchSettings))


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """One batch of the mailbox's stream; the failed records by sequence number, as Lambda wants them."""
    # The mapping's filter lets INSERT alone through; a replay by hand might not.
    records = [record["dynamodb"] for record in event["Records"] if record["eventName"] == "INSERT"]
    failed = dispatcher.dispatch(
        ((each["SequenceNumber"], plain(each["NewImage"])) for each in records),
        {
            each["SequenceNumber"]: each["ApproximateCreationDateTime"]
            for each in records
            if "ApproximateCreationDateTime" in each
        },
    )
    return {
        "batchItemFailures": [
            {"itemIdentifier": each["SequenceNumber"]} for each in records if each["SequenceNumber"] in failed
        ]
    }
