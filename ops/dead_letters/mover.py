"""Dead letters put back by this process: received, sent, and only then deleted.

Who dies between sending and deleting leaves a dead letter in both queues: the ledger drops the second copy of
a message, a receiver that of a callback."""

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from mailroom.aws import queues
from mailroom.dead_letters.cause import subject_of
from mailroom.dead_letters.queue import LONG_POLL_SECONDS, OF_THE_SCHEDULER, SEEN_AGAIN, dead_letter_of
from ops.dead_letters.queues import DeadQueue
from ops.tables import batches

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

HIDDEN_SECONDS = 300
"""For this long nobody else gets a dead letter that is being moved, or one that is passed over."""


class DeadLetterMover:
    """Moves dead letters of one queue. `rate`: dead letters a second at most; None: as fast as it goes.

    Of a FIFO queue a chosen dead letter goes only with all that stand before it in its line, or it would
    overtake them. `found` are the ids of those that were asked for and met, `kept` counts the dead letters of
    these that were not moved, `behind` says of some of them what stands before."""

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
        self._sent: set[str] = set()
        self._passed: defaultdict[str, list[str]] = defaultdict(list)
        self.found: set[str] = set()
        self.kept = 0
        self.behind: dict[str, list[str]] = {}

    def move(self, most: int | None, only: Collection[str] = ()) -> Iterator[int]:
        """Move up to `most` dead letters (None: all that there are), or `only` those with these ids (SQS's or
        their messages'); yields how many after each call. What was received and not moved is there for
        everybody again at the end."""
        moved = 0
        try:
            while (most is None or moved < most) and (dead_letters := self._receive()):
                chosen = self._chosen(dead_letters, only)[: None if most is None else most - moved]
                self.kept += len(chosen)
                for batch in batches(chosen, _size, self._batch, queues.MAX_BYTES):
                    began = self._clock()
                    gone = self._send(batch)
                    moved += len(gone)
                    self.kept -= len(gone)
                    yield len(gone)
                    if self._queue.fifo and len(gone) < len(batch):
                        return
                    if self._rate is not None:
                        self._sleep(max(0.0, len(batch) / self._rate - (self._clock() - began)))
        finally:
            queues.set_visibility(self._client, self._queue.url, [(each, 0) for each in self._held.values()])

    def _chosen(self, dead_letters: list[Any], only: Collection[str]) -> list[Any]:
        """Those that are asked for, but for what would overtake another of its line."""
        if not only:
            return dead_letters
        chosen = []
        for each in dead_letters:
            asked = self._ids(each) & set(only)
            line = self._passed[each["Attributes"]["MessageGroupId"]] if self._queue.fifo else []
            self.found |= asked
            if asked and not line:
                chosen.append(each)
                continue
            if asked:
                self.kept += 1
                self.behind[min(asked)] = list(line)
            line.append(each["MessageId"])
        return chosen

    def _ids(self, dead_letter: Any) -> set[str]:
        """By which ids one may ask for it."""
        key = subject_of(dead_letter_of(self._queue.name, dead_letter)).key
        return {dead_letter["MessageId"]} if key is None else {dead_letter["MessageId"], key.id}

    def _receive(self) -> list[Any]:
        """Up to ten dead letters that were not received before; []: there are no more, or too many of those
        that are passed over have come again."""
        for _ in range(SEEN_AGAIN):
            dead_letters = self._read()
            known = self._held.keys() | self._sent
            self._held |= {each["MessageId"]: each["ReceiptHandle"] for each in dead_letters}
            new = [each for each in dead_letters if each["MessageId"] not in known]
            if new or not dead_letters:
                return new
        return []

    def _read(self) -> list[Any]:
        reply = self._client.receive_message(
            QueueUrl=self._queue.url,
            MaxNumberOfMessages=queues.MAX_ENTRIES,
            VisibilityTimeout=HIDDEN_SECONDS,
            WaitTimeSeconds=LONG_POLL_SECONDS,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return list(reply.get("Messages", []))

    def _send(self, batch: list[Any]) -> list[Any]:
        """The dead letters that the queue took; they are out of the dead-letter queue then."""
        entries = [self._entry(at, each) for at, each in enumerate(batch)]
        reply = self._client.send_message_batch(QueueUrl=self._queue.source_url, Entries=entries)
        taken = reply.get("Successful", ())
        gone = [batch[int(each["Id"])] for each in taken]
        # A dead letter keeps its id when it dies again: what was moved once is not moved twice.
        self._sent |= {each["MessageId"] for each in taken if "MessageId" in each}
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

    def _entry(self, at: int, dead_letter: Any) -> Any:
        entry: dict[str, Any] = {"Id": str(at), "MessageBody": dead_letter["Body"]}
        # Without the scheduler's words: it is sent now, and a later death has another cause.
        attributes = {
            name: {part: value[part] for part in ("DataType", "StringValue", "BinaryValue") if part in value}
            for name, value in dead_letter.get("MessageAttributes", {}).items()
            if name not in OF_THE_SCHEDULER
        }
        if attributes:
            entry["MessageAttributes"] = attributes
        system = dead_letter["Attributes"]
        if "MessageGroupId" in system:
            entry["MessageGroupId"] = system["MessageGroupId"]
        if self._queue.fifo:
            entry["MessageDeduplicationId"] = _fresh(dead_letter)
        return entry


def _fresh(dead_letter: Any) -> str:
    """A deduplication id of this move only. SQS takes a message under an id that it knows of the last five
    minutes, says yes, and delivers nothing: under its old one the dead letter would be lost. A call that the
    SDK repeats has the same one, and the ledger drops any copy."""
    return hashlib.sha256(f"{dead_letter['MessageId']} {dead_letter['ReceiptHandle']}".encode()).hexdigest()


def _size(dead_letter: Any) -> int:
    """Bytes, as SQS counts them."""
    attributes = dead_letter.get("MessageAttributes", {})
    return len(dead_letter["Body"].encode()) + sum(
        len(name.encode())
        + len(value["DataType"].encode())
        + len(value.get("StringValue", "").encode())
        + len(value.get("BinaryValue", b""))
        for name, value in attributes.items()
    )
