"""Counts how mails end if a sender dies, with a trial for each point: before and after each of its calls.

The senders run in this process, on models of AWS with a virtual clock: those with two providers, whose rules
take hours, and durable functions, whose local runner is a library. suite.py kills processes of the others."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, product
from typing import Protocol

from lab import size
from tests.support.faults.outside import Outside, Side, Trouble

NAMES = [f"mail-{number}" for number in range(size(10, 2))]
"""Mails of the batch, fewer with SHORT=1. SES accepts each of them."""
SIDES: tuple[Side, ...] = ("before", "after")
COLUMNS = ("stops", "sent_twice", "lost", "stuck", "unknown")
LABELS = {
    "durable": "durable function, default steps",
    "durable_at_most_once": "the same, at most once",
}
"""Titles of the senders, in the order of the table."""
TWO_PROVIDERS: dict[Trouble, str] = {
    "down": "the first is out of reach",
    "throttles": "the first throttles",
    "loses answers": "the first loses its responses",
}
"""Ways in which the first of two providers fails all requests."""
LABELS |= {
    f"{sender}_{trouble}": f"{label}; {words}"
    for trouble, words in TWO_PROVIDERS.items()
    for sender, label in (
        ("mailroom", "Mailroom, two providers"),
        ("failover", "Powertools, on any error the second provider"),
    )
}
Counts = dict[str, int]


class Trial(Protocol):
    """Sender with a queue that contains the batch. One process dies at the call `outside.stop`."""

    outside: Outside

    def deliver(self) -> None:
        """Make the first delivery."""

    def finish(self) -> None:
        """Make all further deliveries, until the queue is empty."""

    def sends(self) -> Counter[str]:
        """Return how often the provider accepted each mail."""

    def dead_letters(self) -> set[str]:
        """Return the mails in the dead-letter queue."""

    def failures(self) -> dict[str, bool]:
        """Return the mails with a recorded failure, each with True if it is unknown whether it was sent."""


def count(begin: Callable[[], Trial], at_once: int = 1) -> Counts:
    """Return how often a mail ended in each way, summed over all stops. `at_once` trials run at the same
    time."""
    whole = begin()
    whole.deliver()
    whole.finish()
    assert whole.sends().keys() == {*NAMES}
    places = product(range(len(whole.outside.calls)), SIDES)
    with ThreadPoolExecutor(at_once) as threads:
        ends = threads.map(lambda place: ["stops", *_stopped(begin(), place)], places)
    total = Counter(chain.from_iterable(ends))
    return {name: total[name] for name in COLUMNS}


def _stopped(trial: Trial, place: tuple[int, Side]) -> Iterator[str]:
    trial.outside.stop = place
    trial.deliver()
    trial.finish()
    assert trial.outside.stopped_at is not None
    sends, stuck, failures = trial.sends(), trial.dead_letters(), trial.failures()
    for name in NAMES:
        if sends[name] > 1:
            yield "sent_twice"
        if name in stuck:
            yield "stuck"
        if failures.get(name):
            yield "unknown"
        if not sends[name] and name not in stuck and name not in failures:
            yield "lost"
