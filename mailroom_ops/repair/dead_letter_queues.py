"""The dead-letter queues of a stage, which are recognized by their names, and scans that do not remove dead
letters."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.dead_letters.cause import ExplainedDeadLetter, explain
from mailroom.dead_letters.queue import LONG_POLL_SECONDS, DeadLetterQueue
from mailroom.ledger.batch import items_of
from mailroom_ops.shared import deployed_stage as stages
from mailroom_ops.shared.deeds import Deeds
from mailroom_ops.shared.refusals import NotDeployed, Refused

if TYPE_CHECKING:
    import boto3
    from types_boto3_sqs import SQSClient

ALL = "all"
"""Word that commands take for all queues."""
HIDDEN_SECONDS = 270.0
"""Seconds for which a received dead letter is hidden from other readers. If this process dies before it puts
the letter back, the letter becomes visible a little after that time."""


class DeadQueue(Struct, frozen=True):
    """Dead-letter queue. `name` is its short name, such as mail-dlq or fax-dlq.fifo, which the function
    dead-letters uses too."""

    name: str
    url: str

    @property
    def queue(self) -> str:
        """Short name of the queue to which this dead-letter queue belongs, without `.fifo`."""
        return self.name.removesuffix(".fifo").removesuffix("-dlq")

    def holds(self, channel: str) -> bool:
        """Return whether this queue can contain messages of the channel."""
        return self.queue == channel or self.queue.startswith(f"{channel}-")

    @property
    def fifo(self) -> bool:
        """True for a FIFO queue."""
        return self.name.endswith(".fifo")


def dead_queues(sqs: "SQSClient", stage: str) -> list[DeadQueue]:
    """Return the dead-letter queues of a stage, sorted by name. Raises NotDeployed if the stage has none."""
    urls = {name: url for name, url in stages.queue_urls(sqs, stage).items() if stages.is_dead(name)}
    if not urls:
        raise NotDeployed(f"dead-letter queue of {stage}")
    return sorted((DeadQueue(*item) for item in urls.items()), key=lambda queue: queue.queue)


class DeadQueues:
    """Finds and scans the dead-letter queues of one stage."""

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        self.client = session.client("sqs")
        self.deeds = Deeds(session, stage)
        self.read = partial(items_of, session.client("dynamodb"), stages.name(stage, "ledger"))
        """Function that reads the ledger items of messages."""
        self._stage = stage

    def named(self, name: str | None) -> list[DeadQueue]:
        """Return the dead-letter queue with a name, or all if `name` is None. The name may be that of the
        dead-letter queue or that of the queue to which it belongs.

        Raises Refused, which lists the existing names, if the queue does not exist.
        """
        queues = dead_queues(self.client, self._stage)
        if name is None:
            return queues
        short = name.removeprefix(stages.prefix(self._stage)).removesuffix(".fifo").removesuffix("-dlq")
        matches = [queue for queue in queues if queue.queue == short]
        if not matches:
            names = ", ".join(queue.queue for queue in queues)
            raise Refused(f"stage {self._stage} has no queue {name!r:.80}; use one of {names}")
        return matches

    @contextmanager
    def scan(self, queue: DeadQueue) -> Iterator["ScanPass"]:
        """Yield a pass through a queue. At the end of the block, dead letters that were not deleted are put
        back."""
        pass_ = ScanPass(self.client, queue, self)
        try:
            yield pass_
        finally:
            pass_.put_back()


class ScanPass(DeadLetterQueue):
    """Iterator over the dead letters of a queue, each once. Afterwards, `complete` returns whether these were
    all dead letters: a pass can hold only a limited number, and in a long pass the first letters become
    visible and are received again before the last ones."""

    def __init__(self, client: "SQSClient", queue: DeadQueue, queues: DeadQueues) -> None:
        super().__init__(client, queue.name, queue.url, LONG_POLL_SECONDS)
        self._queues = queues

    def __iter__(self) -> Iterator[ExplainedDeadLetter]:
        while not self.full and (dead_letters := self.receive(HIDDEN_SECONDS)):
            yield from explain(self._queues.read, dead_letters)
