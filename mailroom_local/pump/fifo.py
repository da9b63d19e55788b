"""Event source mapping of a FIFO queue by Lambda's rules: message groups are processed in parallel, and the
messages of a group in order.

The queue itself returns no message of a group that has a message in flight. A message is received only when a
function is free, so that its visibility timeout does not end while it waits. Failed messages stay in the
queue, which returns them again or moves them to its dead-letter queue.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mailroom_local.pump.functions import TROUBLE, TROUBLE_SECONDS, Invoked, retry_until_ok

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

AT_MOST = 6
"""Maximum number of concurrent invocations: each runs in a process, on perhaps only two cores."""
WAIT_SECONDS = 20


@dataclass(frozen=True)
class FifoMapping:
    """Settings of a mapping. `concurrency` is the maximum number of batches that are processed at a time."""

    function: str
    queue: str
    batch_size: int
    concurrency: int

    @classmethod
    def from_api(cls, answer: Mapping[str, Any]) -> "FifoMapping":
        """Parse an entry of the response of ListEventSourceMappings."""
        allowed = (answer.get("ScalingConfig") or {}).get("MaximumConcurrency", AT_MOST)
        return cls(
            function=answer["FunctionArn"],
            queue=answer["EventSourceArn"],
            batch_size=answer["BatchSize"],
            concurrency=min(allowed, AT_MOST),
        )


@dataclass(frozen=True)
class FifoMessage:
    """Received message: the receipt handle to delete it, and its record in a Lambda event."""

    id: str
    receipt: str
    record: Mapping[str, Any]

    @classmethod
    def received(cls, entry: Mapping[str, Any], queue: str) -> "FifoMessage":
        """Parse an entry of the response of ReceiveMessage, whose request asked for all attributes."""
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
    """Convert a message attribute of SQS to its form in a Lambda event. `stringListValues` and
    `binaryListValues` are always empty."""
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


def finished(batch: Sequence[FifoMessage], invoked: Invoked) -> list[FifoMessage]:
    """Return the messages to delete after an invocation.

    No message is deleted after an error of the function, if the function did not run, or if a reported
    identifier is missing, empty or not of this batch.
    """
    if invoked.error is not None or invoked.refused:
        return []
    failed = {*invoked.reported}
    if failed - {message.id for message in batch}:
        return []
    return [message for message in batch if message.id not in failed]


class EmulatedQueue:
    """Queue of the emulator with the ARN `arn`, which must exist."""

    def __init__(self, client: "SQSClient", arn: str) -> None:
        self._client = client
        self._arn = arn
        self._url = client.get_queue_url(QueueName=arn.rpartition(":")[2])["QueueUrl"]

    def receive(self, count: int) -> list[FifoMessage]:
        """Wait for messages, and return at most `count`. Returns an empty list if there are none, or after a
        failed request."""
        try:
            reply = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=count,
                WaitTimeSeconds=WAIT_SECONDS,
                AttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        except TROUBLE as trouble:  # for example, the emulator may be stopping
            print(f"receiving from {self._arn} again: {trouble}", flush=True)
            time.sleep(TROUBLE_SECONDS)
            return []
        return [FifoMessage.received(entry, self._arn) for entry in reply.get("Messages", [])]

    def delete(self, messages: Sequence[FifoMessage]) -> None:
        """Delete messages. A message that was received again since is not deleted, as on AWS."""
        for message in messages:
            retry_until_ok(lambda message=message: self._delete(message))  # type: ignore[misc]

    def _delete(self, message: FifoMessage) -> None:
        try:
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message.receipt)
        except self._client.exceptions.ReceiptHandleIsInvalid:
            print(f"{message.id} was not deleted: its visibility time-out had ended", flush=True)


class Poller:
    """Loop that receives messages of one mapping and invokes its function. `invoke` gets the event as JSON
    and must not raise."""

    def __init__(self, mapping: FifoMapping, queue: EmulatedQueue, invoke: Callable[[str], Invoked]) -> None:
        self._mapping = mapping
        self._queue = queue
        self._invoke = invoke
        self._free = threading.Semaphore(mapping.concurrency)

    def run(self) -> None:
        while True:
            self.poll()

    def poll(self) -> None:
        """Wait until a function is free, receive a batch, and invoke the function in a thread."""
        self._free.acquire()
        messages = self._queue.receive(self._mapping.batch_size)
        if not messages:
            self._free.release()
            return
        threading.Thread(target=self._work, args=(messages,), daemon=True).start()

    def _work(self, messages: Sequence[FifoMessage]) -> None:
        try:
            invoked = self._invoke(json.dumps({"Records": [message.record for message in messages]}))
            done = finished(messages, invoked)
            if done:
                self._queue.delete(done)
        finally:
            self._free.release()
