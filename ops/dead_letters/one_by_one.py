"""Dead letters put back by this process: received, sent, and only then deleted.

For some of a queue's letters, which SQS's own task cannot choose, and for services that have no such task.
Who dies between sending and deleting leaves a letter in both queues: the ledger drops the second copy of a
message, a receiver that of a callback.
"""

import time
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from mailroom import queues
from mailroom.dead_letter import letter_of
from mailroom.dead_letter_subject import subject_of
from ops.dead_letters.queues import DeadQueue

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

HIDDEN_SECONDS = 300
"""For as long nobody else gets a letter that is being moved, or one that is passed over."""
LONG_POLL_SECONDS = 1
_OF_THE_SCHEDULER = ("ERROR_CODE", "ERROR_MESSAGE")
"""Why EventBridge Scheduler could not send it: it was sent now, and a later death has another cause."""


class OneByOne:
    """Moves letters of one queue. `rate`: letters a second at most; None: as fast as it goes."""

    def __init__(
        self,
        client: "SQSClient",
        queue: DeadQueue,
        rate: int | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._queue = queue
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        # In a FIFO queue each waits for the one before: a refused one must not be overtaken.
        self._batch = 1 if queue.fifo else queues.MAX_ENTRIES
        self._held: dict[str, str] = {}

    def move(self, most: int, only: Collection[str] = ()) -> Iterator[int]:
        """Move up to `most` letters, or `only` those with these ids (SQS's or their messages'); yields how
        many after each call. What was received and not moved is there for everybody again at the end."""
        moved = 0
        try:
            while moved < most and (letters := self._receive()):
                chosen = [each for each in letters if _is_among(self._queue.name, each, only)][: most - moved]
                for batch in _batches(chosen, self._batch):
                    began = self._clock()
                    gone = self._send(batch)
                    moved += len(gone)
                    yield len(gone)
                    if self._queue.fifo and len(gone) < len(batch):
                        return
                    self._wait(len(batch), began)
        finally:
            queues.set_visibility(self._client, self._queue.url, [(each, 0) for each in self._held.values()])

    def _receive(self) -> list[Any]:
        """Up to ten letters that were not received before; []: there are no more."""
        reply = self._client.receive_message(
            QueueUrl=self._queue.url,
            MaxNumberOfMessages=queues.MAX_ENTRIES,
            VisibilityTimeout=HIDDEN_SECONDS,
            WaitTimeSeconds=LONG_POLL_SECONDS,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        letters = reply.get("Messages", [])
        new = [each for each in letters if each["MessageId"] not in self._held]
        self._held |= {each["MessageId"]: each["ReceiptHandle"] for each in letters}
        return new

    def _send(self, batch: list[Any]) -> list[Any]:
        """The letters that the queue took; they are out of the dead-letter queue then."""
        entries = [self._entry(at, each) for at, each in enumerate(batch)]
        reply = self._client.send_message_batch(QueueUrl=self._queue.source_url, Entries=entries)
        gone = [batch[int(each["Id"])] for each in reply.get("Successful", ())]
        if gone:
            self._client.delete_message_batch(
                QueueUrl=self._queue.url,
                Entries=[
                    {"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(gone)
                ],
            )
        for each in gone:
            del self._held[each["MessageId"]]
        return gone

    def _entry(self, at: int, letter: Any) -> Any:
        entry: dict[str, Any] = {"Id": str(at), "MessageBody": letter["Body"]}
        told = {
            name: {part: value[part] for part in ("DataType", "StringValue", "BinaryValue") if part in value}
            for name, value in letter.get("MessageAttributes", {}).items()
            if name not in _OF_THE_SCHEDULER
        }
        if told:
            entry["MessageAttributes"] = told
        system = letter["Attributes"]
        if "MessageGroupId" in system:
            entry["MessageGroupId"] = system["MessageGroupId"]
        if self._queue.fifo:
            entry["MessageDeduplicationId"] = system["MessageDeduplicationId"]
        return entry

    def _wait(self, sent: int, began: float) -> None:
        if self._rate is not None:
            self._sleep(max(0.0, sent / self._rate - (self._clock() - began)))


def _is_among(queue: str, letter: Any, only: Collection[str]) -> bool:
    if not only or letter["MessageId"] in only:
        return True
    key = subject_of(letter_of(queue, letter)).key
    return key is not None and key.id in only


def _batches(letters: list[Any], most: int) -> Iterator[list[Any]]:
    """Runs of letters that one call takes, in order."""
    batch: list[Any] = []
    size = 0
    for each in letters:
        bytes_ = len(each["Body"].encode()) + _attributes_size(each)
        if batch and (len(batch) == most or size + bytes_ > queues.MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += bytes_
    if batch:
        yield batch


def _attributes_size(letter: Any) -> int:
    told = letter.get("MessageAttributes", {})
    return sum(
        len(name.encode())
        + len(value["DataType"].encode())
        + len(value.get("StringValue", "").encode())
        + len(value.get("BinaryValue", b""))
        for name, value in told.items()
    )
