"""Waits for what must come, and no longer than it may take."""

import time
from collections.abc import Callable, Iterable

from lab.harness.expected import Key
from lab.harness.stage_client import StageClient

POLL_SECONDS = 0.25
QUIET_SECONDS = 2.0
AT_ONCE = 100
"""Messages that are looked at together: BatchGetItem's own bound."""
Progress = Callable[[int], object]


class NotSettled(RuntimeError):
    """The pipeline did not come to rest in time; the message says what it still holds."""


class Waiter:
    """Every wait is bounded: it raises NotSettled after `seconds` in which nothing came closer. So a slow
    machine takes longer, and is not given up."""

    def __init__(
        self,
        stage: StageClient,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._stage = stage
        self._clock = clock
        self._sleep = sleep

    def until_ended(self, keys: Iterable[Key], seconds: float, progress: Progress) -> None:
        pending = list(keys)
        every = len(pending)

        def lacking() -> str:
            all_of_them = True
            while pending and all_of_them:
                finished = self._stage.ended(pending[:AT_ONCE])
                pending[:] = [key for key in pending if key not in finished]
                all_of_them = len(finished) == AT_ONCE
            progress(every - len(pending))
            return f"{every - len(pending)} of {every} messages have ended" if pending else ""

        self.until(lacking, seconds)

    def until_reported(self, seconds: float) -> None:
        """Wait until the providers have sent all reports."""

        def lacking() -> str:
            waiting = {name: count for name, count in self._stage.events()["waiting"].items() if count}
            return f"reports are still to come: {waiting}" if waiting else ""

        self.until(lacking, seconds)

    def until_quiet(self, seconds: float) -> None:
        """Wait until all queues have been empty for a while."""
        empty_since = self._clock()

        def lacking() -> str:
            nonlocal empty_since
            if any(self._stage.depths().values()):
                empty_since = self._clock()
            return "the queues are not empty" if self._clock() - empty_since < QUIET_SECONDS else ""

        self.until(lacking, seconds)

    def until(self, missing_work: Callable[[], str], seconds: float) -> None:
        """Wait until `missing_work` returns an empty text. The text changes as the end comes closer."""
        deadline, before = self._clock() + seconds, ""
        while lack := missing_work():
            if lack != before:
                deadline, before = self._clock() + seconds, lack
            elif self._clock() > deadline:
                raise NotSettled(f"For {seconds:.0f} s {lack}. {self._stage.held()}")
            self._sleep(POLL_SECONDS)
