"""Waits for what must come, and no longer than it may take."""

import time
from collections.abc import Callable, Mapping, Set

from local.demo.checks.feedback import Recipient
from local.demo.checks.standing import Key, reached, unreached
from local.demo.watch import Watch

POLL_SECONDS = 0.25
QUIET_SECONDS = 2.0
SHOWN = 5
Progress = Callable[[int], None]


class Unsettled(RuntimeError):
    """The pipeline did not come to rest in time; the message says what it still holds."""


class Patience:
    """All that it waits for is bounded: `seconds` are the longest that it waits, then it raises Unsettled."""

    def __init__(
        self,
        watch: Watch,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._watch = watch
        self._clock = clock
        self._sleep = sleep

    def until_completed(self, which: str, count: int, seconds: float, progress: Progress) -> None:
        """Until so many messages of MAILS or FAXES have ended."""

        def lacking() -> str:
            completed = self._watch.completed(which)
            progress(completed)
            return "" if completed >= count else f"{completed} of {count} messages have ended"

        self._until(lacking, seconds)

    def until_final(self, expected: Mapping[Key, str], seconds: float, progress: Progress) -> None:
        """Until each message stands where it must in the end."""

        def lacking() -> str:
            statuses = self._watch.statuses()
            progress(reached(expected, statuses))
            others = unreached(expected, statuses)
            named = ", ".join(others[:SHOWN])
            return f"{len(others)} of {len(expected)} messages stand elsewhere ({named})" if others else ""

        self._until(lacking, seconds)

    def until_suppressed(self, recipients: Set[Recipient], seconds: float) -> None:
        """Until all of these are on the suppression list."""

        def lacking() -> str:
            missing = sorted(recipients - self._watch.suppressed().keys())
            return f"the suppression list lacks {missing}" if missing else ""

        self._until(lacking, seconds)

    def until_quiet(self, seconds: float) -> None:
        """Until no queue has held anything for a while."""
        empty_since = self._clock()

        def lacking() -> str:
            nonlocal empty_since
            if any(self._watch.depths().values()):
                empty_since = self._clock()
            return "the queues are not empty" if self._clock() - empty_since < QUIET_SECONDS else ""

        self._until(lacking, seconds)

    def _until(self, lacking: Callable[[], str], seconds: float) -> None:
        deadline = self._clock() + seconds
        while lack := lacking():
            if self._clock() > deadline:
                raise Unsettled(f"After {seconds:.0f} s {lack}. {self._watch.held()}")
            self._sleep(POLL_SECONDS)
