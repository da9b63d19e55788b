"""Delayed reports of the simulated providers, which arrive in another order than the events happened."""

import heapq
import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from itertools import count
from typing import Any, Generic, TypeVar
from urllib.error import HTTPError
from urllib.request import Request as Post

from mailroom.clock import Clock
from mailroom_local.aws import open_url
from mailroom_local.providers.http import Pages, Request

T = TypeVar("T")
AGAIN_SECONDS = 0.5
ANSWER_SECONDS = 20.0
SEED = 7


@dataclass
class Disorder:
    """Disorder of a provider's reports about a message. Each report is delayed by a random time of up to
    `spread_seconds`. `doubled` is the share of reports that are delivered twice, from 0 to 1."""

    spread_seconds: float = 0.6
    doubled: float = 0.1


class DelayQueue(Generic[T]):
    """Queue that delivers each item at its time, several together if several are due.

    `deliver` gets at most `most` items, and returns the items to retry. `start` delivers in a background
    thread. The queue is thread-safe.
    """

    def __init__(
        self, deliver: Callable[[list[T]], list[T]], most: int = 10, clock: Clock = time.monotonic
    ) -> None:
        self._deliver = deliver
        self._most = most
        self._clock = clock
        self._random = random.Random(SEED)  # noqa: S311 - only for shuffling
        self._waiting: list[tuple[float, int, T]] = []
        self._delivering: list[T] = []
        # Numbers determine the order of items with equal times. They begin higher than the numbers of items
        # that an earlier process has stored.
        self._order = count(time.time_ns())
        self._changed = threading.Condition()
        self.disorder = Disorder()
        self.paused = False

    def chance(self, share: float) -> bool:
        """Return True at random with the probability `share`."""
        return self._random.random() < share

    def report(self, thing: T) -> None:
        """Add a report with a random delay, and possibly twice, according to `disorder`."""
        for _ in range(2 if self.chance(self.disorder.doubled) else 1):
            self.add(thing, self._random.uniform(0, self.disorder.spread_seconds))

    def add(self, thing: T, seconds: float) -> None:
        with self._changed:
            entry = (self._clock() + seconds, next(self._order), thing)
            heapq.heappush(self._waiting, entry)
            if self._waiting[0] is entry:  # the thread waits for a later entry, so it must be woken
                self._changed.notify()

    def pause(self) -> None:
        """Stop delivering, also items that are added from now on."""
        with self._changed:
            self.paused = True

    def resume(self) -> None:
        """Deliver again, including the items that were held back."""
        with self._changed:
            self.paused = False
            self._changed.notify()

    @property
    def waiting(self) -> int:
        """Number of items that wait for their time."""
        return len(self._waiting)

    def run_due(self) -> int:
        """Deliver the items that are due now, `most` at a time. Return the number of deliveries that were
        tried."""
        tried = 0
        while things := self._due():
            tried += len(things)
            for thing in self._deliver(things):
                self.add(thing, AGAIN_SECONDS)
            self._delivering = []
        return tried

    def start(self) -> None:
        """Deliver in a background thread until the process ends."""
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self.run_due()
            with self._changed:
                self._changed.wait(self._rest())

    def _rest(self) -> float | None:
        """Return the seconds until the next item is due, or None if nothing is due until the queue is
        changed."""
        if self.paused or not self._waiting:
            return None
        return max(0.0, self._waiting[0][0] - self._clock())

    def _due(self) -> list[T]:
        with self._changed:
            if self.paused:
                return []
            moment = self._clock()
            while self._waiting and len(self._delivering) < self._most and self._waiting[0][0] <= moment:
                self._delivering.append(heapq.heappop(self._waiting)[2])
            return self._delivering


def post(url: str, headers: Mapping[str, str], body: bytes) -> int:
    """POST a report to this machine. Return the status of the response, or 0 if there was no response."""
    request = Post(url, body, dict(headers), method="POST")  # noqa: S310 - the stage chooses the URL
    try:
        with open_url(request, ANSWER_SECONDS) as response:
            return response.status
    except HTTPError as error:
        with error:
            return error.code
    except (HTTPException, OSError):
        return 0


def pages(queues: Mapping[str, DelayQueue[Any]]) -> Pages:
    """Return the pages GET /events, POST /events/pause, POST /events/resume, and POST /events/disorder, which
    sets the values of a Disorder for all queues. `queues` contains the queue of each provider by its name."""

    def shown() -> dict[str, Any]:
        waiting = {name: queue.waiting for name, queue in queues.items()}
        return {"paused": all(queue.paused for queue in queues.values()), "waiting": waiting}

    def after(change: Callable[[DelayQueue[Any]], None]) -> dict[str, Any]:
        for queue in queues.values():
            change(queue)
        return shown()

    def disorder(request: Request) -> dict[str, Any]:
        settings = json.loads(request.body)
        disorder = Disorder(float(settings["spread_seconds"]), float(settings["doubled"]))
        return after(lambda queue: setattr(queue, "disorder", disorder))

    return Pages(
        "/events",
        {
            "GET /events": lambda _: shown(),
            "POST /events/pause": lambda _: after(DelayQueue.pause),
            "POST /events/resume": lambda _: after(DelayQueue.resume),
            "POST /events/disorder": disorder,
        },
    )
