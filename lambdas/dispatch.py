"""Dispatches messages: reads new items from the mailbox's stream, and puts messages into the channels'
queues."""

from typing import Any

from mailroom import environment
from mailroom.aws.dynamo_values import plain
from mailroom.dispatch.dispatcher import Dispatcher
from mailroom.environment import DispatchSettings
from mailroom.telemetry import instrumented

dispatcher = Dispatcher.of(environment.read(DispatchSettings))


@instrumented
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Handle a batch of the mailbox's stream, and return the sequence numbers of failed records, as a partial
    batch response of Lambda."""
    # The filter of the event source mapping passes only inserts. An operator may replay other records too.
    records = [record["dynamodb"] for record in event["Records"] if record["eventName"] == "INSERT"]
    failed = dispatcher.dispatch(
        ((record["SequenceNumber"], plain(record["NewImage"])) for record in records),
        {
            record["SequenceNumber"]: record["ApproximateCreationDateTime"]
            for record in records
            if "ApproximateCreationDateTime" in record
        },
    )
    numbers = (record["SequenceNumber"] for record in records)
    return {"batchItemFailures": [{"itemIdentifier": number} for number in numbers if number in failed]}
