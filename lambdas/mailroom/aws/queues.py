"""SQS in batches: as few calls as there can be, and one entry's failure never another's."""

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
"""A message's, and a whole batch's; attributes count."""
MAX_DELAY_SECONDS = 900
MAX_VISIBILITY_SECONDS = 42_300
"""SQS ends a visibility 12 hours after the receive, and refuses one beyond: the function's time comes off."""
PUT_AT = "put_at"
"""The attribute that says when a message's item was put, in whole epoch seconds, as the stream has it."""
IN_LINE = "in_line"
"""The attribute of a message that has waited for its slot of the day."""
AT_ONCE = 0.0
"""The wait of what no time fixes: back it comes, receive after receive, so that it soon reaches the
dead-letter queue and locks nothing on its way."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message for a queue. `reference` is the caller's own, to tell which entries failed.

    `group` orders it on a FIFO queue, and keeps a standard one fair. `duplicate` is for FIFO queues: of
    entries with the same in one group, SQS takes the first of five minutes.
    """

    reference: str
    body: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    delay: int = 0
    group: str | None = None
    duplicate: str | None = None

    @property
    def size(self) -> int:
        """Bytes, as SQS counts them."""
        return len(self.body.encode()) + sum(
            len(name) + len(value.encode()) + len("String") for name, value in self.attributes.items()
        )


def batches(
    values: Iterable[T], size_of: Callable[[T], int], most: int = MAX_ENTRIES, most_bytes: int = MAX_BYTES
) -> Iterator[list[T]]:
    """Runs of values, in order, of so many and of so many bytes together at most: by default what fits one
    SendMessageBatch."""
    batch: list[T] = []
    bytes_ = 0
    for value in values:
        size = size_of(value)
        if batch and (len(batch) == most or bytes_ + size > most_bytes):
            yield batch
            batch, bytes_ = [], 0
        batch.append(value)
        bytes_ += size
    if batch:
        yield batch


def send(client: "SQSClient", url: str, entries: Sequence[Entry]) -> set[str]:
    """Send all; the references of those that SQS would not take, after a second try of each alone."""
    failed: set[str] = set()
    for batch in batches(entries, lambda each: each.size):
        left = _send(client, url, batch)
        for entry in batch:
            if entry.reference in left and _send(client, url, [entry]):
                failed.add(entry.reference)
    return failed


def _send(client: "SQSClient", url: str, batch: Sequence[Entry]) -> set[str]:
    """One call; the references that did not make it. A call that fails as a whole fails them all."""
    try:
        reply = client.send_message_batch(
            QueueUrl=url, Entries=[_request(at, entry) for at, entry in enumerate(batch)]
        )
    except (ClientError, BotoCoreError) as error:
        logger.warning("queue send failed", queue=url, entries=len(batch), error=str(error))
        return {entry.reference for entry in batch}
    refused = reply.get("Failed", [])
    if refused:
        logger.warning("queue entries refused", queue=url, codes=sorted({each["Code"] for each in refused}))
    return {batch[int(each["Id"])].reference for each in refused}


def _request(at: int, entry: Entry) -> Any:
    request: dict[str, Any] = {"Id": str(at), "MessageBody": entry.body}
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
    """Let each receipt's message come back after its wait in seconds, ten a call.

    A wait that cannot be set is logged, not raised: the message then comes back when the queue's own
    visibility time-out ends, later than wished, but safely.
    """
    for start in range(0, len(waits), MAX_ENTRIES):
        entries: list[ChangeMessageVisibilityBatchRequestEntryTypeDef] = [
            {"Id": str(at), "ReceiptHandle": receipt, "VisibilityTimeout": _bounded(seconds)}
            for at, (receipt, seconds) in enumerate(waits[start : start + MAX_ENTRIES])
        ]
        try:
            reply = client.change_message_visibility_batch(QueueUrl=url, Entries=entries)
        except (ClientError, BotoCoreError) as error:
            logger.warning("visibility not set", queue=url, entries=len(entries), error=str(error))
            count("VisibilityNotSet", len(entries))
            continue
        if reply.get("Failed"):
            logger.warning("visibility not set", queue=url, entries=len(reply["Failed"]))
            count("VisibilityNotSet", len(reply["Failed"]))


def _bounded(seconds: float) -> int:
    return round(max(0.0, min(MAX_VISIBILITY_SECONDS, seconds + 0.499)))


_DEPTHS: Any = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


def depth(client: "SQSClient", url: str) -> int:
    """About how many messages a queue holds, those in flight and delayed among them."""
    found = client.get_queue_attributes(QueueUrl=url, AttributeNames=_DEPTHS).get("Attributes", {})
    return sum(map(int, found.values()))


def put_at(record: Mapping[str, Any]) -> float | None:
    """When what a record is about was put, in epoch seconds; else when it was queued; None: nobody says."""
    said = record.get("messageAttributes", {}).get(PUT_AT, {}).get("stringValue")
    try:
        seconds = int(said) if said else int(record["attributes"]["SentTimestamp"]) / 1000
    except (KeyError, ValueError, OverflowError):  # a queue's message may be anybody's
        return None
    return seconds if 0 <= seconds < END_OF_TIME else None
