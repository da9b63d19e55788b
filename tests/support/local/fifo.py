"""A FIFO queue in memory, and a function that answers as it is told."""

import json
import queue
import threading
from collections.abc import Callable, Sequence

from mailroom_local.pump.fifo import EmulatedQueue, FifoMapping, FifoMessage, Poller
from mailroom_local.pump.functions import Invoked

ARN = "arn:aws:sqs:us-east-1:000000000000:fax.fifo"
MAPPING = FifoMapping("u", "send-fax", ARN, batch_size=1, concurrency=2)
DONE = Invoked("request", None)
RAISED = Invoked("request", {"errorMessage": "boom"}, error="Unhandled")


def message(name: str) -> FifoMessage:
    """A message whose id, body and receipt are made of its name."""
    entry = {"MessageId": name, "ReceiptHandle": f"receipt-{name}", "Body": name, "MD5OfBody": "md5"}
    return FifoMessage.received(entry, ARN)


def names(messages: Sequence[FifoMessage]) -> list[str]:
    return [each.id for each in messages]


def reported(*failed: object) -> Invoked:
    """A response with these batch item failures."""
    return Invoked("request", {"batchItemFailures": [{"itemIdentifier": name} for name in failed]})


class Shelf(EmulatedQueue):
    """Messages one after another; what was deleted, in order."""

    def __init__(self, *waiting: str) -> None:
        self._waiting = list(waiting)
        self.asked: list[int] = []
        self.deleted: queue.Queue[str] = queue.Queue()

    def receive(self, count: int) -> list[FifoMessage]:
        self.asked.append(count)
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return [message(name) for name in taken]

    def delete(self, messages: Sequence[FifoMessage]) -> None:
        for each in messages:
            self.deleted.put(each.id)


class Function:
    """Counts how many of it run at once; each run waits for its turn to end, or for `answer`."""

    def __init__(self, answer: Callable[[list[str]], Invoked] = lambda _: DONE) -> None:
        self.answer = answer
        self.started: queue.Queue[list[str]] = queue.Queue()
        self.may_end = threading.Semaphore(0)

    def __call__(self, event: str) -> Invoked:
        bodies = [record["body"] for record in json.loads(event)["Records"]]
        self.started.put(bodies)
        assert self.may_end.acquire(timeout=5)
        return self.answer(bodies)


def poller(shelf: Shelf, function: Function, mapping: FifoMapping = MAPPING) -> Poller:
    return Poller(mapping, shelf, function)
