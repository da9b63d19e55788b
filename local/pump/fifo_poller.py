"""Polls one FIFO queue and keeps as many batches under way as its mapping allows.

A message is received only when a function is free for it: none spends its visibility time-out waiting here.
The queue itself hands out no message of a group that has one in flight.
"""

import json
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from local.pump.fifo_mapping import FifoMapping, Message
from local.pump.fifo_rules import finished
from local.pump.functions import Invoked


class Queue(Protocol):
    """What the poller needs of a queue."""

    def receive(self, count: int) -> Sequence[Message]:
        """At most so many messages; waits a while for the first. Raises nothing of AWS's."""

    def delete(self, messages: Sequence[Message]) -> None:
        """Take messages out, however long that takes."""


class Poller:
    """The loop of one mapping. `invoke` takes the event as JSON and raises nothing."""

    def __init__(self, mapping: FifoMapping, queue: Queue, invoke: Callable[[str], Invoked]) -> None:
        self._mapping = mapping
        self._queue = queue
        self._invoke = invoke
        self._free = threading.Semaphore(mapping.concurrency)

    def run(self) -> None:
        """For ever."""
        while True:
            self.poll()

    def poll(self) -> None:
        """Wait until a function is free, receive a batch for it, and start it."""
        self._free.acquire()
        messages = self._queue.receive(self._mapping.batch_size)
        if not messages:
            self._free.release()
            return
        threading.Thread(target=self._work, args=(messages,), daemon=True).start()

    def _work(self, messages: Sequence[Message]) -> None:
        try:
            invoked = self._invoke(json.dumps({"Records": [message.record for message in messages]}))
            done = finished(messages, invoked, self._mapping)
            if done:
                self._queue.delete(done)
        finally:
            self._free.release()
