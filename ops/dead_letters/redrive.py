"""Putting a queue's dead letters back on their way, all of them or chosen ones: received, sent, and only then
deleted.

Who dies between sending and deleting leaves a dead letter in both queues: the ledger drops the second copy of
a message, a receiver that of a callback.

SQS has a task for that (StartMessageMoveTask). The task cannot choose, and emulators do not have it. So one
way serves every redrive, and what tests have seen happens on AWS too.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from mailroom.aws import queues
from mailroom.dead_letters.cause import subject_of
from mailroom.dead_letters.queue import LONG_POLL_SECONDS, OF_THE_SCHEDULER, DeadLetter, DeadLetterQueue
from ops.dead_letters.queues import HIDDEN_SECONDS, DeadQueue, DeadQueues
from ops.screen import Advance
from ops.stage import depth, source_url

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

_NAMED = 3
"""Dead letters that a sentence names."""
State = Literal["done", "nothing"]
"""How a redrive ended. `nothing` was moved: nothing lay there, or it was a dry run."""


class Redriven(Struct, frozen=True):
    """Answer of `dead-letters redrive`. `found` dead letters lay there before, `moved` went to `destination`,
    `left` should have gone and did not. SQS's counts are approximate. `reason` names chosen dead letters
    that would have overtaken others of their line."""

    stage: str
    queue: str
    destination: str
    dry_run: bool
    state: State
    found: int
    moved: int
    left: int
    reason: str | None = None


class Redrive:
    """Redrives one queue: all that it has, or `only` the dead letters with these ids. Making one changes
    nothing. `found` dead letters lie there."""

    def __init__(
        self,
        queues: DeadQueues,
        stage: str,
        queue: DeadQueue,
        only: Collection[str] = (),
        rate: int | None = None,
    ) -> None:
        self.stage, self.queue, self.only, self.rate = stage, queue, tuple(only), rate
        self.found = depth(queues.client, queue.url).all
        self._client = queues.client

    def run(self, advance: Advance) -> Redriven:
        """Do it; returns when it is over."""
        mover = DeadLetterMover(self._client, self.queue, self.rate)
        moved = 0
        # SQS's count may be too low: it bounds only what else could go round for ever.
        for count in mover.move(None if self.only else self.found, self.only):
            moved += count
            advance(moved, len(self.only) or self.found)
        left = mover.kept + len(set(self.only) - mover.found) if self.only else self.found - moved
        return self.answer("done", moved, left, _behind(mover.behind))

    def answer(
        self, state: State, moved: int, left: int, reason: str | None = None, *, dry_run: bool = False
    ) -> Redriven:
        """How it stands."""
        return Redriven(
            self.stage,
            self.queue.queue,
            source_url(self.queue.url).rpartition("/")[2],
            dry_run,
            state,
            self.found,
            moved,
            max(0, left),
            reason,
        )


def _behind(lines: Mapping[str, Sequence[str]]) -> str | None:
    """Name the dead letters before those that would have overtaken them."""
    if not lines:
        return None
    said = []
    for id_, before in sorted(lines.items()):
        more = f" and {len(before) - _NAMED} more" if len(before) > _NAMED else ""
        said.append(f"{id_} stands behind {', '.join(before[:_NAMED])}{more}")
    return f"A line keeps its order: {'; '.join(said)}. Move those first, or the whole queue."


class DeadLetterMover(DeadLetterQueue):
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
        super().__init__(client, queue.name, queue.url, LONG_POLL_SECONDS)
        self._queue = queue
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        # In a FIFO queue each waits for the one before: a refused one must not be overtaken.
        self._batch = 1 if queue.fifo else queues.MAX_ENTRIES
        self._passed: defaultdict[str, list[str]] = defaultdict(list)
        self.found: set[str] = set()
        self.kept = 0
        self.behind: dict[str, list[str]] = {}

    def move(self, most: int | None, only: Collection[str] = ()) -> Iterator[int]:
        """Move up to `most` dead letters (None: all that there are), or `only` those with these ids (SQS's or
        their messages'); yields how many after each call, 0 after one that received. What was received and
        not moved is there for everybody again at the end."""
        moved = 0
        try:
            while (most is None or moved < most) and (dead_letters := self.receive(HIDDEN_SECONDS)):
                yield 0  # a long search may be left, too
                chosen = self._chosen(dead_letters, only)[: None if most is None else most - moved]
                self.kept += len(chosen)
                for batch in queues.batches(chosen, _size, self._batch):
                    began = self._clock()
                    gone = self._send(batch)
                    moved += gone
                    self.kept -= gone
                    yield gone
                    if self._queue.fifo and gone < len(batch):
                        return
                    if self._rate is not None:
                        self._sleep(max(0.0, len(batch) / self._rate - (self._clock() - began)))
        finally:
            self.put_back()

    def _chosen(self, dead_letters: list[DeadLetter], only: Collection[str]) -> list[DeadLetter]:
        """The dead letters that are asked for, without those that would overtake another of their line."""
        if not only:
            return dead_letters
        chosen = []
        for each in dead_letters:
            key = subject_of(each).key
            asked = {each.message_id, *([key.id] if key else [])} & set(only)
            line = self._passed[each.message["Attributes"]["MessageGroupId"]] if self._queue.fifo else []
            self.found |= asked
            if asked and not line:
                chosen.append(each)
                continue
            if asked:
                self.kept += 1
                self.behind[min(asked)] = list(line)
            line.append(each.message_id)
        return chosen

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


def _size(dead_letter: DeadLetter) -> int:
    """Bytes, as SQS counts them."""
    attributes = dead_letter.message.get("MessageAttributes", {})
    return len(dead_letter.body.encode()) + sum(
        len(name.encode())
        + len(value["DataType"].encode())
        + len(value.get("StringValue", "").encode())
        + len(value.get("BinaryValue", b""))
        for name, value in attributes.items()
    )
