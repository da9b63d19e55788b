"""A rate kept without coordination: C workers that each leave C / rate seconds between submits."""

from collections.abc import Callable

from mailroom.clock import Clock


class Pace:
    """One worker's gap between submits, in seconds.

    The first submit of an invocation waits as well: the last one of another environment is not known here,
    and environments rotate. Time that passed since the last submit counts.
    """

    def __init__(self, gap: float, clock: Clock, sleep: Callable[[float], None]) -> None:
        self._gap = gap
        self._clock = clock
        self._sleep = sleep
        self._last = clock()

    def begin(self) -> None:
        """An invocation starts."""
        self._last = self._clock()

    def left(self) -> float:
        """Seconds until the next submit may start."""
        return max(0.0, self._last + self._gap - self._clock())

    def wait(self) -> None:
        """Sleep until then."""
        if self._gap:
            self._sleep(self.left())
        self._last = self._clock()
