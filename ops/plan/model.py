"""How long many messages take: a model of the senders that one lane has. All times are in seconds.

A worker is a function that takes one batch after another: it waits before each submit so that all of them
together keep to the rate (see `mailroom.delivery.worker`), submits, and writes down what came of it. An
estimate, for latency and the time between invocations vary, and Lambda starts with few workers.
"""

import math
from dataclasses import dataclass
from typing import Literal

Bound = Literal["rate", "workers"]

_EXACT = 1e-9
"""What a floating-point division may be off by."""


@dataclass(frozen=True)
class Senders:
    """`workers` at once, each with `batch` messages an invocation, and the messages a second that all of them
    keep to (None: as many as they can)."""

    workers: int
    batch: int
    rate: float | None

    @property
    def pace(self) -> float:
        """The gap between one worker's submits."""
        return self.workers / self.rate if self.rate else 0


@dataclass(frozen=True)
class Assumed:
    """What no setting says: `latency` is a message's time in its sender, for the provider's answer and the
    ledger's writes; `between` is the time from one invocation of a worker to its next."""

    latency: float
    between: float


@dataclass(frozen=True)
class Plan:
    """What becomes of the numbers."""

    senders: Senders
    assumed: Assumed
    messages: int

    @property
    def invocation(self) -> float:
        """One invocation: the first submit waits for its pace as well."""
        gap, latency = self.senders.pace, self.assumed.latency
        return gap + (self.senders.batch - 1) * max(gap, latency) + latency

    @property
    def speed(self) -> float:
        """Messages a second, everything counted."""
        return self.senders.workers * self.senders.batch / (self.invocation + self.assumed.between)

    @property
    def seconds(self) -> float:
        """How long all of them take; one alone takes as long as it takes."""
        return max(self.messages / self.speed, self.senders.pace + self.assumed.latency)

    @property
    def bounds(self) -> dict[Bound, float]:
        """Messages a second that each bound alone would allow."""
        batch = self.senders.batch
        workers = self.senders.workers * batch / (batch * self.assumed.latency + self.assumed.between)
        return {**({"rate": self.senders.rate} if self.senders.rate else {}), "workers": workers}

    @property
    def bound(self) -> Bound:
        """The one that counts."""
        bounds = self.bounds
        return min(bounds, key=lambda each: bounds[each])

    @property
    def least_seconds(self) -> float:
        """How long all of them take at the very least, by that bound alone."""
        return self.messages / self.bounds[self.bound]

    def workers_for_rate(self) -> int | None:
        """The fewest workers that are no bound any more; None where there is no rate to reach."""
        if not self.senders.rate:
            return None
        one = self.bounds["workers"] / self.senders.workers
        return math.ceil(self.senders.rate / one - _EXACT)
