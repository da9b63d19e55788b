"""What Lambda writes to S3 when a stream gives up on records: place and shape as AWS documents them.

The invocation record itself is in `payload`, as a JSON string within the JSON document.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from local.pump.stream_delivery import GivenUp
from local.pump.stream_mapping import Record, StreamMapping


def object_key(mapping: StreamMapping, shard: str, now: datetime) -> str:
    """aws/lambda/<mapping>/<shard>/YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<random>, in UTC."""
    stamp = now.astimezone(UTC)
    return f"aws/lambda/{mapping.uuid}/{shard}/{stamp:%Y/%m/%d}/{stamp:%Y-%m-%dT%H.%M.%S}-{uuid4()}"


def document(mapping: StreamMapping, shard: str, given_up: GivenUp, now: datetime) -> dict[str, Any]:
    """The whole document; `responseContext` is left out if the function never saw the records."""
    records, last = given_up.records, given_up.last
    response = (
        {"executedVersion": "$LATEST", "functionError": last.error, "statusCode": 200} if last else None
    )
    return {
        "requestContext": {
            "requestId": last.request_id if last else str(uuid4()),
            "functionArn": mapping.function,
            "condition": given_up.condition,
            "approximateInvokeCount": given_up.invocations,
        },
        **({"responseContext": response} if response else {}),
        "version": "1.0",
        "timestamp": now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "DDBStreamBatchInfo": {
            "shardId": shard,
            "startSequenceNumber": records[0].sequence,
            "endSequenceNumber": records[-1].sequence,
            "approximateArrivalOfFirstRecord": _second(records[0].created),
            "approximateArrivalOfLastRecord": _second(records[-1].created),
            "batchSize": len(records),
            "streamArn": mapping.stream,
        },
        "payload": event_of(records),
    }


def event_of(records: tuple[Record, ...] | list[Record]) -> str:
    """The function's event, from records that are serialized already."""
    return '{"Records":[' + ",".join(record.text for record in records) + "]}"


def _second(epoch: float) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
