"""The dead-letter queues that a stage has, found by their names: a new queue needs no entry anywhere."""

from typing import TYPE_CHECKING

import boto3
from msgspec import Struct

from ops import stage as stages
from ops.screen import NotDeployed, Refused

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

_DEAD = ("-dlq", "-dlq.fifo")


class DeadQueue(Struct, frozen=True):
    """A dead-letter queue, and the queue that it belongs to.

    `queue` is that one's short name, without `.fifo`; `name` is the dead-letter queue's, as the function
    dead-letters calls it: mail-dlq, fax-dlq.fifo.
    """

    queue: str
    name: str
    url: str
    arn: str
    source_url: str
    source_arn: str

    @property
    def fifo(self) -> bool:
        """Whether it keeps an order within groups."""
        return self.name.endswith(".fifo")


class Counts(Struct, frozen=True):
    """About how many letters a queue holds; `hidden`: somebody has received them and not put them back."""

    visible: int
    hidden: int

    @property
    def all(self) -> int:
        """Both."""
        return self.visible + self.hidden


class DeadQueues:
    """One stage's."""

    def __init__(self, session: boto3.Session, stage: str) -> None:
        self.client: SQSClient = session.client("sqs")
        self._prefix = stages.prefix(stage)
        self._stage = stage

    def found(self) -> list[DeadQueue]:
        """All there are, by name. Raises NotDeployed where the stage has none."""
        pages = self.client.get_paginator("list_queues").paginate(
            QueueNamePrefix=self._prefix, PaginationConfig={"PageSize": 1000}
        )
        urls = [url for page in pages for url in page.get("QueueUrls", ()) if url.endswith(_DEAD)]
        if not urls:
            raise NotDeployed(f"dead-letter queue of {self._stage}")
        return sorted((self._queue(url) for url in urls), key=lambda each: each.queue)

    def named(self, name: str | None) -> list[DeadQueue]:
        """The one of that name, or all. The queue's and the dead-letter queue's name will both do.

        Raises Refused, naming those that there are.
        """
        found = self.found()
        if name is None:
            return found
        short = name.removeprefix(self._prefix).removesuffix(".fifo").removesuffix("-dlq")
        chosen = [each for each in found if each.queue == short]
        if not chosen:
            there = ", ".join(each.queue for each in found)
            raise Refused(f"stage {self._stage} has no queue {name!r:.80}; there are: {there}")
        return chosen

    def counts(self, queue: DeadQueue) -> Counts:
        """How many letters lie there now."""
        depth = stages.depth(self.client, queue.url)
        return Counts(depth.visible, depth.in_flight)

    def _queue(self, url: str) -> DeadQueue:
        reply = self.client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arn = reply["Attributes"]["QueueArn"]
        name = url.rsplit("/", 1)[1].removeprefix(self._prefix)
        return DeadQueue(
            name.removesuffix(".fifo").removesuffix("-dlq"), name, url, arn, _source(url), _source(arn)
        )


def _source(dead: str) -> str:
    """URL or ARN of the queue whose letters lie in `dead`: the names differ by -dlq alone."""
    if dead.endswith("-dlq.fifo"):
        return dead.removesuffix("-dlq.fifo") + ".fifo"
    return dead.removesuffix("-dlq")
