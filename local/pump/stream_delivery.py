"""Delivers batches of one lane to their function, in order, until each record is done or given up on."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from local.pump.functions import Invoked
from local.pump.stream_mapping import Record, StreamMapping
from local.pump.stream_rules import RETRIES_EXHAUSTED, TOO_OLD, Batch, after, backoff, split_expired


@dataclass(frozen=True)
class GivenUp:
    """Records that go to the on-failure destination, and why. `last` is None if none was invoked."""

    records: tuple[Record, ...]
    condition: str
    last: Invoked | None
    invocations: int


class Delivery:
    """The rules of `rules`, applied. `invoke` raises nothing; it, clock and sleep are injected."""

    def __init__(
        self,
        mapping: StreamMapping,
        invoke: Callable[[Sequence[Record]], Invoked],
        give_up: Callable[[GivenUp], None],
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._mapping = mapping
        self._invoke = invoke
        self._give_up = give_up
        self._clock = clock
        self._sleep = sleep

    def deliver(self, records: Sequence[Record]) -> None:
        """Returns when every record was handled or given up on, in the order of the stream."""
        waiting = deque([Batch(tuple(records))])
        last: Invoked | None = None
        failures = 0
        while waiting:
            batch = self._without_expired(waiting.popleft(), last)
            if not batch.records:
                continue
            last = self._invoke(batch.records)
            batch = replace(batch, invocations=batch.invocations + 1)
            step = after(batch, last, self._mapping)
            if step.given_up:
                self._give_up(GivenUp(step.given_up, RETRIES_EXHAUSTED, last, batch.invocations))
            waiting.extendleft(reversed(step.batches))
            failures = failures + 1 if step.batches else 0
            if step.batches:
                self._sleep(backoff(failures - 1))

    def _without_expired(self, batch: Batch, last: Invoked | None) -> Batch:
        expired, fresh = split_expired(batch, self._mapping, self._clock())
        if expired:
            seen = last if batch.invocations else None
            self._give_up(GivenUp(expired, TOO_OLD, seen, batch.invocations))
        return fresh
