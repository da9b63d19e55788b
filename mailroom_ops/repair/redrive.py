"""Dead letters put back into their queues, all of them or chosen ones: received, sent, and only then deleted.

Who dies between sending and deleting leaves a dead letter in both queues: the ledger drops the second copy of
a message, a receiver that of a callback.

SQS has a task for that (StartMessageMoveTask). The task cannot choose, and emulators do not have it. So one
way serves every redrive, and what tests have seen happens on AWS too.
"""

import hashlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import queues
from mailroom.dead_letters.cause import subject_of
from mailroom.dead_letters.queue import LONG_POLL_SECONDS, OF_THE_SCHEDULER, DeadLetter, DeadLetterQueue
from mailroom.message.message import Key
from mailroom_ops.repair.dead_letter_queues import HIDDEN_SECONDS, DeadQueue
from mailroom_ops.shared.deployed_stage import depth, source_url
from mailroom_ops.shared.screen import Advance

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


class Redriven(Struct, frozen=True):
    """Result of a redrive of one queue. `found` lay there before, `moved` are back in the queue,
    `left` should have gone and did not. SQS's counts are approximate."""

    queue: str
    found: int
    moved: int
    left: int


class Redrive:
    """Redrives one queue: all that it has, or `only` the dead letters with these ids, SQS's or their
    messages'. Making one changes nothing. `found` dead letters lie there."""

    def __init__(self, sqs: "SQSClient", queue: DeadQueue, only: Collection[str] = ()) -> None:
        self.queue, self.only = queue, tuple(only)
        self.found = depth(sqs, queue.url).all
        self._client = sqs

    def sentence(self) -> str:
        """Return a sentence about what the redrive will do."""
        chosen = f"{len(self.only)} chosen of the" if self.only else "about"
        return f"{chosen} {self.found} dead letters of {self.queue.queue} go back into that queue."

    def run(self, advance: Advance) -> Redriven:
        """Run the redrive, and return when it has ended."""
        mover = DeadLetterMover(self._client, self.queue)
        moved = 0
        # SQS's count may be too low: it bounds only what else could go round for ever.
        for count in mover.move(None if self.only else self.found, self.only):
            moved += count
            advance(moved, len(self.only) or self.found)
        left = mover.kept + len(set(self.only) - mover.met) if self.only else self.found - moved
        return Redriven(self.queue.queue, self.found, moved, max(0, left))


class DeadLetterMover(DeadLetterQueue):
    """Moves dead letters of one queue. `met` and `moved`: SQS's ids of those that were asked for and met, and
    of those that were moved, with the ids and keys of their messages. `kept`: how many were met and not
    moved."""

    def __init__(self, client: "SQSClient", queue: DeadQueue) -> None:
        super().__init__(client, queue.name, queue.url, LONG_POLL_SECONDS)
        self._queue = queue
        # In a FIFO queue each waits for the one before: a refused one must not be overtaken.
        self._batch = 1 if queue.fifo else queues.MAX_ENTRIES
        self.met: set[str | Key] = set()
        self.moved: set[str | Key] = set()
        self.kept = 0

    def move(self, most: int | None, only: Collection[str | Key] = ()) -> Iterator[int]:
        """Move up to `most` dead letters (None: all that there are), or `only` those with these ids (SQS's or
        their messages') or of the messages with these keys; yields how many after each call, 0 after one that
        received. What was received and not moved is there for everybody again at the end."""
        moved = 0
        wanted = set(only)
        try:
            while (most is None or moved < most) and (dead_letters := self.receive(HIDDEN_SECONDS)):
                yield 0  # a long search may be left, too
                chosen = [each for each in dead_letters if not wanted or wanted & _names(each)]
                self.met |= {name for each in chosen for name in _names(each)}
                for batch in queues.batches(
                    chosen[: None if most is None else most - moved], _size, self._batch
                ):
                    gone = self._send(batch)
                    moved += gone
                    self.kept += len(batch) - gone
                    yield gone
                    if self._queue.fifo and gone < len(batch):
                        return
        finally:
            self.put_back()

    def _send(self, batch: list[DeadLetter]) -> int:
        """How many the queue took; they are out of the dead-letter queue then."""
        entries = [self._entry(at, each) for at, each in enumerate(batch)]
        reply = self._client.send_message_batch(QueueUrl=source_url(self._queue.url), Entries=entries)
        taken = reply.get("Successful", ())
        gone = [batch[int(each["Id"])] for each in taken]
        # A message keeps its id when it dies: what was moved once is not moved twice.
        self._skipped |= {each["MessageId"] for each in taken if "MessageId" in each}
        if gone:
            self._client.delete_message_batch(
                QueueUrl=self._queue.url,
                Entries=[{"Id": str(at), "ReceiptHandle": each.receipt} for at, each in enumerate(gone)],
            )
        for each in gone:
            del self._held[each.message_id]
            self.moved |= _names(each)
        return len(gone)

    def _entry(self, at: int, dead_letter: DeadLetter) -> Any:
        entry: dict[str, Any] = {"Id": str(at), "MessageBody": dead_letter.body}
        # Without the scheduler's words: it is sent now, and a later death has another cause.
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
            # An id of this move only. SQS takes a message under an id that it knows of the last five minutes,
            # says yes, and delivers nothing: under its old one the dead letter would be lost. A call that the
            # SDK repeats has the same one, and the ledger drops any copy.
            of_move = f"{dead_letter.message_id} {dead_letter.receipt}".encode()
            entry["MessageDeduplicationId"] = hashlib.sha256(of_move).hexdigest()
        return entry


def _names(dead_letter: DeadLetter) -> set[str | Key]:
    """By which an operator may ask for a dead letter. A callback or an event has its message's id, and no
    key: it is about a message, and is none."""
    subject = subject_of(dead_letter)
    if subject.key is None:
        return {dead_letter.message_id}
    own = {subject.key} if subject.kind == "message" else set()
    return {dead_letter.message_id, subject.key.id, *own}


def _size(dead_letter: DeadLetter) -> int:
    """Size in bytes by the rules of SQS."""
    attributes = dead_letter.message.get("MessageAttributes", {})
    return len(dead_letter.body.encode()) + sum(
        len(name.encode())
        + len(value["DataType"].encode())
        + len(value.get("StringValue", "").encode())
        + len(value.get("BinaryValue", b""))
        for name, value in attributes.items()
    )
