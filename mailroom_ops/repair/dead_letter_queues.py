"""The dead-letter queues of a stage, found by their names alone, and scans that leave each dead letter
there."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.dead_letters.cause import ExplainedDeadLetter, explain
from mailroom.dead_letters.queue import LONG_POLL_SECONDS, DeadLetterQueue
from mailroom.ledger.batch import items_of
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
        self.read = partial(items_of, session.client("dynamodb"), stages.name(stage, "ledger"))
        """Function that reads the ledger items of messages."""
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


class ScanPass(DeadLetterQueue):
    """Iterator over the dead letters of a queue, each once. After its end, `complete` is true if these were
    all of them: a pass can hold only a certain number, and in a long pass the first dead letters are
    received again before the last ones."""

    def __init__(self, client: "SQSClient", queue: DeadQueue, queues: DeadQueues) -> None:
        super().__init__(client, queue.name, queue.url, LONG_POLL_SECONDS)
        self._queues = queues

    def __iter__(self) -> Iterator[ExplainedDeadLetter]:
        while not self.full and (dead_letters := self.receive(HIDDEN_SECONDS)):
            yield from explain(self._queues.read, dead_letters)
