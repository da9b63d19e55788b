"""Batch calls to SQS: as few calls as possible, in which the failure of one entry does not affect the
others."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.clock import END_OF_TIME
from mailroom.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import ChangeMessageVisibilityBatchRequestEntryTypeDef

T = TypeVar("T")

MAX_ENTRIES = 10
MAX_BYTES = 1024 * 1024
"""Maximum size in bytes of a message, and also of a whole batch, attributes included."""
MAX_DELAY_SECONDS = 900
MAX_VISIBILITY_SECONDS = 42_300
"""Maximum visibility time-out in seconds that Mailroom sets. SQS refuses a time-out that ends more than 12
hours after the receive, and the function may have used 15 minutes of that time."""
PUT_AT = "put_at"
"""Name of the message attribute with the time when the message's item was put into the mailbox, in whole
epoch seconds from the stream."""
DUE_AT = "due_at"
"""Name of the message attribute of a message that has waited: the time from which its delay counts, in whole
epoch seconds."""
AT_ONCE = 0.0
"""Visibility time-out in seconds of a message that no later try can handle. The queue delivers the message
again at once, so that it soon becomes a dead letter, and does not block its message group for long."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message for a queue."""

    reference: str
    """Caller's reference, by which `send` reports the entries that failed."""
    body: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    delay: int = 0
    """Seconds before the message can be received."""
    group: str | None = None
    """Message group, which determines the order in a FIFO queue, and the fairness of a standard queue."""
    duplicate: str | None = None
    """Deduplication ID, for FIFO queues only: SQS drops an entry if another one with the same ID was sent
    within five minutes before."""

    @property
    def size(self) -> int:
        """Size in bytes by the rules of SQS: the body, and the names, types and values of attributes."""
        return len(self.body.encode()) + sum(
            len(name) + len(value.encode()) + len("String") for name, value in self.attributes.items()
        )


def batches(
    values: Iterable[T], size_of: Callable[[T], int], max_count: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES
) -> Iterator[list[T]]:
    """Yield the values in order, in batches within both limits: by default the limits of one
    SendMessageBatch."""
    batch: list[T] = []
    bytes_ = 0
    for value in values:
        size = size_of(value)
        if batch and (len(batch) == max_count or bytes_ + size > max_bytes):
            yield batch
            batch, bytes_ = [], 0
        batch.append(value)
        bytes_ += size
    if batch:
        yield batch


def send(client: "SQSClient", url: str, entries: Sequence[Entry]) -> set[str]:
    """Send the entries, and return the references of those that failed.

    An entry that fails in its batch is tried a second time in a separate call.
    """
    failed: set[str] = set()
    for batch in batches(entries, lambda entry: entry.size):
        unsent = _send(client, url, batch)
        for entry in batch:
            if entry.reference in unsent and _send(client, url, [entry]):
                failed.add(entry.reference)
    return failed


def _send(client: "SQSClient", url: str, batch: Sequence[Entry]) -> set[str]:
    """Make one call, and return the references of the entries that failed: all entries if the whole call
    failed."""
    try:
        response = client.send_message_batch(
            QueueUrl=url, Entries=[_request(index, entry) for index, entry in enumerate(batch)]
        )
    except (ClientError, BotoCoreError) as error:
        logger.warning("queue send failed", queue=url, entries=len(batch), error=str(error))
        return {entry.reference for entry in batch}
    failures = response.get("Failed", [])
    if failures:
        codes = sorted({failure["Code"] for failure in failures})
        logger.warning("queue entries refused", queue=url, codes=codes)
    return {batch[int(failure["Id"])].reference for failure in failures}


def _request(index: int, entry: Entry) -> Any:
    request: dict[str, Any] = {"Id": str(index), "MessageBody": entry.body}
    if entry.attributes:
        request["MessageAttributes"] = {
            name: {"DataType": "String", "StringValue": value} for name, value in entry.attributes.items()
        }
    if entry.delay:
        request["DelaySeconds"] = entry.delay
    if entry.group:
        request["MessageGroupId"] = entry.group
    if entry.duplicate:
        request["MessageDeduplicationId"] = entry.duplicate
    return request


def set_visibility(client: "SQSClient", url: str, waits: Sequence[tuple[str, float]]) -> None:
    """Set the visibility time-outs of messages. `waits` are pairs of a receipt handle and a wait in seconds,
    of which one call to SQS handles ten.

    A wait that cannot be set is logged, and no error is raised: the message is then delivered again when the
    queue's own visibility time-out ends, which is later but safe.
    """
    for start in range(0, len(waits), MAX_ENTRIES):
        entries: list[ChangeMessageVisibilityBatchRequestEntryTypeDef] = [
            {"Id": str(index), "ReceiptHandle": receipt, "VisibilityTimeout": _bounded(seconds)}
            for index, (receipt, seconds) in enumerate(waits[start : start + MAX_ENTRIES])
        ]
        try:
            response = client.change_message_visibility_batch(QueueUrl=url, Entries=entries)
        except (ClientError, BotoCoreError) as error:
            logger.warning("visibility not set", queue=url, entries=len(entries), error=str(error))
            count("VisibilityNotSet", len(entries))
            continue
        if failures := response.get("Failed"):
            logger.warning("visibility not set", queue=url, entries=len(failures))
            count("VisibilityNotSet", len(failures))


def _bounded(seconds: float) -> int:
    return round(max(0.0, min(MAX_VISIBILITY_SECONDS, seconds + 0.499)))


_DEPTHS: Any = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


def depth(client: "SQSClient", url: str) -> int:
    """Return approximately how many messages a queue holds, including those in flight and delayed."""
    attributes = client.get_queue_attributes(QueueUrl=url, AttributeNames=_DEPTHS).get("Attributes", {})
    return sum(map(int, attributes.values()))


def put_at(record: Mapping[str, Any]) -> float | None:
    """Return the time in epoch seconds when the record's item was put into the mailbox. If the record lacks
    that time, return the time when the record was queued.

    Returns None if the record lacks both times.
    """
    if text := _attribute(record, PUT_AT):
        return _moment(text)
    return _moment(record.get("attributes", {}).get("SentTimestamp", ""), parts=1000)


def due_at(record: Mapping[str, Any]) -> float | None:
    """Return the time in epoch seconds from which the delay of a message that has waited counts; None for a
    message that has not waited."""
    return _moment(text) if (text := _attribute(record, DUE_AT)) else None


def first_received_at(record: Mapping[str, Any]) -> float:
    """Return the time in epoch seconds when the record was received for the first time. Return infinity if
    the record lacks that time."""
    text = record["attributes"].get("ApproximateFirstReceiveTimestamp")
    received = None if text is None else _moment(text, parts=1000)
    return math.inf if received is None else received


def _attribute(record: Mapping[str, Any], name: str) -> str:
    attribute = record.get("messageAttributes", {}).get(name)
    return "" if attribute is None else str(attribute.get("stringValue", ""))


def _moment(text: str, parts: int = 1) -> float | None:
    """Return the time in a text in epoch seconds, or None if it is invalid. The text is in units of 1/`parts`
    second."""
    try:
        seconds = int(text) / parts
    except (ValueError, OverflowError):  # another program may have written an invalid time into the queue
        return None
    return seconds if 0 <= seconds < END_OF_TIME else None
