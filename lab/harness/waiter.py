"""Waits for the progress of a pipeline, with limits."""

import time
from collections.abc import Callable, Iterable

from lab.harness.expected import Key
from lab.harness.stage_client import StageClient

POLL_SECONDS = 0.25
QUIET_SECONDS = 2.0
AT_ONCE = 100
"""Number of messages that are read together, the limit of BatchGetItem."""
Progress = Callable[[int], object]


class NotSettled(RuntimeError):
    """The pipeline did not become idle in time. The message describes what is left in it."""


class Waiter:
    """Waits with a limit: a wait raises NotSettled after `seconds` without progress. A slow machine can
    therefore take longer without being given up."""

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
        """Wait until all queues have been empty for QUIET_SECONDS."""
        empty_since = self._clock()

        def lacking() -> str:
            nonlocal empty_since
            if any(self._stage.depths().values()):
                empty_since = self._clock()
            return "the queues are not empty" if self._clock() - empty_since < QUIET_SECONDS else ""

        self.until(lacking, seconds)

    def until(self, missing_work: Callable[[], str], seconds: float) -> None:
        """Wait until `missing_work` returns an empty text. A change of the text counts as progress."""
        deadline, before = self._clock() + seconds, ""
        while lack := missing_work():
            if lack != before:
                deadline, before = self._clock() + seconds, lack
            elif self._clock() > deadline:
                raise NotSettled(f"No progress in {seconds:.0f} s: {lack}. {self._stage.held()}")
            self._sleep(POLL_SECONDS)
