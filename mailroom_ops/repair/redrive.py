"""Moves dead letters back into their queues, all of them or selected ones. Each is received, sent to its
queue, and only then deleted.

A command that dies between sending and deleting leaves a dead letter in both queues: the ledger drops the
second copy of a message, and a receiver the second copy of a callback.

SQS has a task for redrives (StartMessageMoveTask), but the task cannot select letters, and emulators do not
have it. So Mailroom does not use it: every redrive runs the same code, which tests cover.
"""

import hashlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import queues
from mailroom.dead_letters.cause import subject_of
from mailroom.dead_letters.queue import LONG_POLL_SECONDS, OF_THE_SCHEDULER, DeadLetter, DeadLetterQueue
from mailroom.errors import quantity
from mailroom.message.message import Key
from mailroom_ops.repair.dead_letter_queues import HIDDEN_SECONDS, DeadQueue, DeadQueues
from mailroom_ops.shared.deployed_stage import depth, source_url
from mailroom_ops.shared.refusals import Advance

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


class Redriven(Struct, frozen=True):
    """Result of a redrive of one queue. `found` dead letters were there before, `moved` are back
    in the queue, and `left` should have moved and did not. SQS's counts are approximate."""

    queue: str
    found: int
    moved: int
    left: int


class Redrive:
    """Redrive of one queue: of all its dead letters, or of `only` the letters with these SQS ids or message
    ids. `found` is the number of dead letters before the redrive."""

    def __init__(self, queues: DeadQueues, queue: DeadQueue, only: Collection[str] = ()) -> None:
        self.queue, self.only = queue, tuple(only)
        self.found = depth(queues.client, queue.url).all
        self._queues = queues

    def sentence(self) -> str:
        """Return a sentence about what the redrive will do."""
        selection = f"{len(self.only)} chosen of the" if self.only else "about"
        queue = self.queue.queue
        letters = quantity(self.found, f"dead letter of {queue} goes", f"dead letters of {queue} go")
        return f"{selection} {letters} back into that queue."

    def run(self, advance: Advance) -> Redriven:
        """Run the redrive, and return when it has ended."""
        count = len(self.only) or self.found
        self._queues.deeds.record(f"put back {count:,} of {self.queue.queue}", ["dead letters"])
        mover = DeadLetterMover(self._queues.client, self.queue)
        moved_count = 0
        # A redrive of all dead letters ends after as many letters as SQS counted: without a limit, letters
        # that come back could be moved for ever. Selected letters need no limit, and SQS's count may be too
        # low.
        for count in mover.move(None if self.only else self.found, self.only):
            moved_count += count
            advance(moved_count, len(self.only) or self.found)
        remaining = mover.kept + len(set(self.only) - mover.met) if self.only else self.found - moved_count
        return Redriven(self.queue.queue, self.found, moved_count, max(0, remaining))


class DeadLetterMover(DeadLetterQueue):
    """Moves dead letters of one queue. `met` contains the SQS ids of the selected letters that were received,
    and the ids and keys of their messages; `moved` contains the same for the letters that were moved. `kept`
    is the number of selected letters that SQS did not accept."""

    def __init__(self, client: "SQSClient", queue: DeadQueue) -> None:
        super().__init__(client, queue.name, queue.url, LONG_POLL_SECONDS)
        self._queue = queue
        # Letters of a FIFO queue are sent one at a time, so that no letter overtakes a letter that SQS
        # rejects.
        self._batch = 1 if queue.fifo else queues.MAX_ENTRIES
        self.met: set[str | Key] = set()
        self.moved: set[str | Key] = set()
        self.kept = 0

    def move(self, limit: int | None, only: Collection[str | Key] = ()) -> Iterator[int]:
        """Move all dead letters, up to a `limit` if it is not None. If `only` is not empty, move only letters
        with these SQS ids, message ids or message keys. Yield the number of moved letters after each request
        to SQS. At the end, letters that were received but not moved are made visible again."""
        moved_count = 0
        names = set(only)
        try:
            while (limit is None or moved_count < limit) and (dead_letters := self.receive(HIDDEN_SECONDS)):
                yield 0  # the caller can stop a long search here
                selected = [letter for letter in dead_letters if not names or names & _names(letter)]
                self.met |= {name for letter in selected for name in _names(letter)}
                for batch in queues.batches(
                    selected[: None if limit is None else limit - moved_count], _size, self._batch
                ):
                    moved_of_batch = self._send(batch)
                    moved_count += moved_of_batch
                    self.kept += len(batch) - moved_of_batch
                    yield moved_of_batch
                    if self._queue.fifo and moved_of_batch < len(batch):
                        return
        finally:
            self.put_back()

    def _send(self, batch: list[DeadLetter]) -> int:
        """Send dead letters to their queue, and delete the accepted ones from the dead-letter queue. Return
        the number of accepted letters."""
        entries = [self._entry(index, letter) for index, letter in enumerate(batch)]
        reply = self._client.send_message_batch(QueueUrl=source_url(self._queue.url), Entries=entries)
        accepted = reply.get("Successful", ())
        letters = [batch[int(entry["Id"])] for entry in accepted]
        # A message keeps its id when it becomes a dead letter, so a letter that comes back is not moved
        # twice.
        self._skipped |= {entry["MessageId"] for entry in accepted if "MessageId" in entry}
        if letters:
            handles = enumerate(letter.receipt for letter in letters)
            self._client.delete_message_batch(
                QueueUrl=self._queue.url,
                Entries=[{"Id": str(index), "ReceiptHandle": handle} for index, handle in handles],
            )
        for letter in letters:
            del self._held[letter.message_id]
            self.moved |= _names(letter)
        return len(letters)

    def _entry(self, index: int, dead_letter: DeadLetter) -> Any:
        entry: dict[str, Any] = {"Id": str(index), "MessageBody": dead_letter.body}
        # Attributes that EventBridge Scheduler added are omitted: they describe an earlier failure, and if
        # the message becomes a dead letter again, the cause is another one.
        attributes = {
            name: {part: value[part] for part in ("DataType", "StringValue", "BinaryValue") if part in value}
            for name, value in dead_letter.message.get("MessageAttributes", {}).items()
            if name not in OF_THE_SCHEDULER
        }
        if attributes:
            entry["MessageAttributes"] = attributes
        system = dead_letter.message["Attributes"]
        if "MessageGroupId" in system:
            entry["MessageGroupId"] = system["MessageGroupId"]
        if self._queue.fifo:
            # The deduplication id is new for each move. If SQS has seen an id in the last five minutes, it
            # reports success but delivers nothing, so under its old id the dead letter would be lost. A
            # request that the SDK retries has the same id, and the ledger drops any copy.
            of_move = f"{dead_letter.message_id} {dead_letter.receipt}".encode()
            entry["MessageDeduplicationId"] = hashlib.sha256(of_move).hexdigest()
        return entry


def _names(dead_letter: DeadLetter) -> set[str | Key]:
    """Return the ids by which a dead letter can be selected: its SQS id, and the id and the key of its
    message. A callback or an event has the id of the message that it is about, but not its key, because it is
    not that message."""
    subject = subject_of(dead_letter)
    if subject.key is None:
        return {dead_letter.message_id}
    keys = {subject.key} if subject.kind == "message" else set()
    return {dead_letter.message_id, subject.key.id, *keys}


def _size(dead_letter: DeadLetter) -> int:
    """Return the size of a dead letter in bytes, by the rules of SQS."""
    attributes = dead_letter.message.get("MessageAttributes", {})
    return len(dead_letter.body.encode()) + sum(
        len(name.encode())
        + len(value["DataType"].encode())
        + len(value.get("StringValue", "").encode())
        + len(value.get("BinaryValue", b""))
        for name, value in attributes.items()
    )
