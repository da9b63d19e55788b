"""The dead-letter queues of a stage, found by their names alone, and scans that leave each dead letter
there."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws.dynamo_batches import batch_get
from mailroom.dead_letters.cause import Cause, Subject, cause_of, subject_of
from mailroom.dead_letters.queue import LONG_POLL_SECONDS, DeadLetter, DeadLetterQueue
from mailroom.ledger.items import where
from mailroom.message.message import Key
from mailroom_ops.shared import deployed_stage as stages
from mailroom_ops.shared.screen import NotDeployed, Refused

if TYPE_CHECKING:
    import boto3
    from types_boto3_sqs import SQSClient

HIDDEN_SECONDS = 270.0
"""A dead letter stays hidden for this long, and a little longer, if this process dies before it puts it
back."""


class DeadQueue(Struct, frozen=True):
    """A dead-letter queue. `name` is its short one, as the function dead-letters calls it: mail-dlq,
    fax-dlq.fifo."""

    name: str
    url: str

    @property
    def queue(self) -> str:
        """The short name of the queue that it belongs to, without `.fifo`."""
        return self.name.removesuffix(".fifo").removesuffix("-dlq")

    def holds(self, channel: str) -> bool:
        """Return whether a message of the channel can lie in this queue."""
        return self.queue == channel or self.queue.startswith(f"{channel}-")

    @property
    def fifo(self) -> bool:
        """True for a FIFO queue."""
        return self.name.endswith(".fifo")


class ExplainedDeadLetter(Struct, frozen=True):
    """Dead letter with its cause. `item` is the item of the ledger, or an empty map."""

    dead_letter: DeadLetter
    subject: Subject
    cause: Cause
    item: dict[str, Any]


def dead_queues(sqs: "SQSClient", stage: str) -> list[DeadQueue]:
    """The dead-letter queues of a stage, by name. Raises NotDeployed if it has none."""
    urls = {name: url for name, url in stages.queue_urls(sqs, stage).items() if stages.is_dead(name)}
    if not urls:
        raise NotDeployed(f"dead-letter queue of {stage}")
    return sorted((DeadQueue(*item) for item in urls.items()), key=lambda queue: queue.queue)


class DeadQueues:
    """The dead-letter queues of one stage."""

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        self.client = session.client("sqs")
        self._dynamodb = session.client("dynamodb")
        self._stage = stage

    def named(self, name: str | None) -> list[DeadQueue]:
        """The one of that name, or all. The queue's and the dead-letter queue's name will both do.

        Raises Refused, naming those that there are.
        """
        queues = dead_queues(self.client, self._stage)
        if name is None:
            return queues
        short = name.removeprefix(stages.prefix(self._stage)).removesuffix(".fifo").removesuffix("-dlq")
        matches = [queue for queue in queues if queue.queue == short]
        if not matches:
            names = ", ".join(queue.queue for queue in queues)
            raise Refused(f"stage {self._stage} has no queue {name!r:.80}; there are: {names}")
        return matches

    @contextmanager
    def scan(self, queue: DeadQueue) -> Iterator["ScanPass"]:
        """A pass through a queue. The end of the block puts back everything that was not deleted."""
        pass_ = ScanPass(self.client, queue, self)
        try:
            yield pass_
        finally:
            pass_.put_back()

    def explain(self, dead_letters: list[DeadLetter]) -> Iterator[ExplainedDeadLetter]:
        """Yield the facts about each of these dead letters. The cause is read anew from the ledger, because
        it may have changed since the dead letter died."""
        subjects = {entry.message_id: subject_of(entry) for entry in dead_letters}
        keys = dict.fromkeys(entry.key for entry in subjects.values() if entry.key is not None)
        keys_by_table = {stages.name(self._stage, "ledger"): [where(key) for key in keys]}
        (stored,) = batch_get(self._dynamodb, keys_by_table, consistent=True).values()
        items = {Key(entry["id"], entry["event_type"]): entry for entry in stored}
        for dead_letter in dead_letters:
            subject = subjects[dead_letter.message_id]
            item = items.get(subject.key, {}) if subject.key is not None else {}
            yield ExplainedDeadLetter(dead_letter, subject, cause_of(dead_letter, subject, item), item)


class ScanPass(DeadLetterQueue):
    """Hands out the dead letters of a queue, each once. When it has ended, `complete` says whether those were
    all: a pass holds a certain number, and in a long one the first dead letters come again before the last
    are seen."""

    def __init__(self, client: "SQSClient", queue: DeadQueue, queues: DeadQueues) -> None:
        super().__init__(client, queue.name, queue.url, LONG_POLL_SECONDS)
        self._queues = queues

    def __iter__(self) -> Iterator[ExplainedDeadLetter]:
        while not self.full and (dead_letters := self.receive(HIDDEN_SECONDS)):
            yield from self._queues.explain(dead_letters)
