"""An event source mapping on a FIFO queue, and the messages that it delivers."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local.pump.functions import REPORTS

AT_MOST = 6
"""Functions at once, whatever the mapping allows: each is a process, and the machine may have two cores."""
DEFAULT_BATCH = 10


@dataclass(frozen=True)
class FifoMapping:
    """The settings of one mapping. `concurrency` is how many batches are worked on at once."""

    uuid: str
    function: str
    queue: str
    batch_size: int = DEFAULT_BATCH
    concurrency: int = AT_MOST
    reports_failures: bool = False

    @classmethod
    def from_api(cls, answer: Mapping[str, Any]) -> "FifoMapping":
        """From an entry of ListEventSourceMappings."""
        if (answer.get("FilterCriteria") or {}).get("Filters"):
            raise ValueError(
                f"The pump filters no queue, and the mapping of {answer['EventSourceArn']} does."
            )
        allowed = (answer.get("ScalingConfig") or {}).get("MaximumConcurrency", AT_MOST)
        return cls(
            uuid=answer["UUID"],
            function=answer["FunctionArn"],
            queue=answer["EventSourceArn"],
            batch_size=answer.get("BatchSize", DEFAULT_BATCH),
            concurrency=min(allowed, AT_MOST),
            reports_failures=REPORTS in answer.get("FunctionResponseTypes", []),
        )


@dataclass(frozen=True)
class Message:
    """One received message: what deleting it takes, and its record in Lambda's event."""

    id: str
    receipt: str
    record: Mapping[str, Any]

    @classmethod
    def received(cls, entry: Mapping[str, Any], queue: str) -> "Message":
        """From an entry of ReceiveMessage that asked for all attributes."""
        attributes = entry.get("MessageAttributes") or {}
        record = {
            "messageId": entry["MessageId"],
            "receiptHandle": entry["ReceiptHandle"],
            "body": entry["Body"],
            "attributes": dict(entry.get("Attributes") or {}),
            "messageAttributes": {name: _attribute(value) for name, value in attributes.items()},
            "md5OfBody": entry["MD5OfBody"],
            "eventSource": "aws:sqs",
            "eventSourceARN": queue,
            "awsRegion": queue.split(":")[3],
        }
        return cls(entry["MessageId"], entry["ReceiptHandle"], record)


def _attribute(value: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute in the words of Lambda's event: lists are always there, and always empty."""
    record: dict[str, Any] = {
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": value["DataType"],
    }
    if "StringValue" in value:
        record["stringValue"] = value["StringValue"]
    if "BinaryValue" in value:
        record["binaryValue"] = base64.b64encode(value["BinaryValue"]).decode()
    return record
