"""What simulated providers tell later, in another order than it happened."""

import heapq
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")
AGAIN_SECONDS = 0.5


class Later(Generic[T]):
    """Hands on each thing when its time has come, several at once where several are due.

    `deliver` gets at most `most` of them and returns those that it could not hand on: they come again. In one
    background thread once `start` was called; safe for many threads.
    """

    def __init__(
        self,
        deliver: Callable[[list[T]], list[T]],
        most: int = 10,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._deliver = deliver
        self._most = most
        self._clock = clock
        self._waiting: list[tuple[float, int, T]] = []
        self._order = count()
        self._paused = False
        self._changed = threading.Condition()

    def add(self, thing: T, seconds: float) -> None:
        """Have it handed on after so long."""
        with self._changed:
            heapq.heappush(self._waiting, (self._clock() + seconds, next(self._order), thing))
            self._changed.notify()

    def pause(self) -> None:
        """Hold back all, also what is added from now on."""
        with self._changed:
            self._paused = True

    def resume(self) -> None:
        """Go on, with what was held back as well."""
        with self._changed:
            self._paused = False
            self._changed.notify()

    @property
    def paused(self) -> bool:
        """Whether it holds back."""
        return self._paused

    @property
    def waiting(self) -> int:
        """How many wait for their time."""
        return len(self._waiting)

    def run_due(self) -> int:
        """Hand on what is due now, `most` at a time; how many were tried."""
        tried = 0
        while things := self._due():
            tried += len(things)
            for thing in self._deliver(things):
                self.add(thing, AGAIN_SECONDS)
        return tried

    def start(self) -> None:
        """Go on by itself, for as long as the process lives."""
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait(self._rest())
            self.run_due()

    def _rest(self) -> float | None:
        """Seconds until something may be due; None: until something changes."""
        if self._paused or not self._waiting:
            return None
        return max(0.0, self._waiting[0][0] - self._clock())

    def _due(self) -> list[T]:
        with self._changed:
            now = self._clock()
            things: list[T] = []
            while (
                not self._paused and self._waiting and len(things) < self._most and self._waiting[0][0] <= now
            ):
                things.append(heapq.heappop(self._waiting)[2])
            return things
