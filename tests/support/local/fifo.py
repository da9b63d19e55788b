"""A FIFO queue in memory, and a function with prepared responses."""

import json
import queue
import threading
from collections.abc import Callable, Sequence

from mailroom_local.pump.fifo import EmulatedQueue, FifoMapping, FifoMessage, Poller
from mailroom_local.pump.functions import Invoked

ARN = "arn:aws:sqs:us-east-1:000000000000:fax.fifo"
MAPPING = FifoMapping("send-fax", ARN, batch_size=1, concurrency=2)
DONE = Invoked("request", None)
RAISED = Invoked("request", {"errorMessage": "boom"}, error="Unhandled")


def fifo_message(name: str) -> FifoMessage:
    """Return a message whose id, body and receipt derive from its name."""
    entry = {"MessageId": name, "ReceiptHandle": f"receipt-{name}", "Body": name, "MD5OfBody": "md5"}
    return FifoMessage.received(entry, ARN)


def names(messages: Sequence[FifoMessage]) -> list[str]:
    return [each.id for each in messages]


def invoked_with_failures(*failed: object) -> Invoked:
    """Return a response with these batch item failures."""
    return Invoked("request", {"batchItemFailures": [{"itemIdentifier": name} for name in failed]})


class FifoShelf(EmulatedQueue):
    """A queue of messages in order, which records deletions in order."""

    def __init__(self, *waiting: str) -> None:
        self._waiting = list(waiting)
        self.asked: list[int] = []
        self.deleted: queue.Queue[str] = queue.Queue()

    def receive(self, count: int) -> list[FifoMessage]:
        self.asked.append(count)
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return [fifo_message(name) for name in taken]

    def delete(self, messages: Sequence[FifoMessage]) -> None:
        for each in messages:
            self.deleted.put(each.id)


class Function:
    """A function that counts its simultaneous runs. Each run waits for its turn to end, or for `answer`."""

    def __init__(self, answer: Callable[[list[str]], Invoked] = lambda _: DONE) -> None:
        self.answer = answer
        self.started: queue.Queue[list[str]] = queue.Queue()
        self.may_end = threading.Semaphore(0)

    def __call__(self, event: str) -> Invoked:
        bodies = [record["body"] for record in json.loads(event)["Records"]]
        self.started.put(bodies)
        assert self.may_end.acquire(timeout=5)
        return self.answer(bodies)


def poller(shelf: FifoShelf, function: Function, mapping: FifoMapping = MAPPING) -> Poller:
    return Poller(mapping, shelf, function)
