"""Waits for what must come, and no longer than it may take."""

import time
from collections.abc import Callable, Iterable, Mapping, Set

from local.demo.client import Key, StageClient

POLL_SECONDS = 0.25
QUIET_SECONDS = 2.0
SHOWN = 5
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
                ended = self._stage.ended(pending[:AT_ONCE])
                pending[:] = [key for key in pending if key not in ended]
                all_of_them = len(ended) == AT_ONCE
            progress(every - len(pending))
            return f"{every - len(pending)} of {every} messages have ended" if pending else ""

        self.until(lacking, seconds)

    def until_final(self, expected: Mapping[Key, str], seconds: float, progress: Progress) -> None:
        def lacking() -> str:
            statuses = self._stage.statuses()
            others = not_final(expected, statuses)
            progress(len(expected) - len(others))
            named = ", ".join(others[:SHOWN])
            return (
                f"{len(others)} of {len(expected)} messages have another status ({named})" if others else ""
            )

        self.until(lacking, seconds)

    def until_suppressed(self, recipients: Set[tuple[str, str]], seconds: float) -> None:
        def lacking() -> str:
            missing = sorted(recipients - self._stage.suppressed().keys())
            return f"the suppression list lacks {missing}" if missing else ""

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

    def until(self, lacking: Callable[[], str], seconds: float) -> None:
        """Wait until `lacking` names nothing more. What it names changes as things come closer."""
        deadline, before = self._clock() + seconds, ""
        while lack := lacking():
            if lack != before:
                deadline, before = self._clock() + seconds, lack
            elif self._clock() > deadline:
                raise NotSettled(f"For {seconds:.0f} s {lack}. {self._stage.held()}")
            self._sleep(POLL_SECONDS)


def not_final(expected: Mapping[Key, str], statuses: Mapping[Key, str]) -> list[str]:
    """The ids of the messages that have another status than they must, each with that status."""
    return [
        f"{key[0]} ({statuses.get(key, 'not in the ledger')})"
        for key, status in expected.items()
        if statuses.get(key) != status
    ]
