"""Metrics of a message that is tried again and again. The alarm `tries-failing` is tested with the same
tries."""

from collections import Counter
from typing import Any

import pytest

from mailroom.message.outcome import Misconfigured, Retry
from tests.support.failing_tries import KINDS, failing_tries
from tests.support.unit.post import Counted, Make
from tests.support.unit.shared import LEASE, FakeClock, item

MINUTES = 20
UNTIL = MINUTES * 60.0
UNANSWERED = ("Retried", "Unknown", "Misconfigured")
DOWN = ConnectionResetError("the provider is down")


def prepare(_message: Any) -> None:
    raise RuntimeError("the bucket is down")


@pytest.mark.parametrize("kind", KINDS)
def test_each_failing_try_is_counted_at_the_time_that_the_model_of_tries_predicts(
    make_post: Make, clock: FakeClock, counted: Counted, kind: str
) -> None:
    worker = {
        "throttled": lambda: make_post(Retry("slow down")),
        "silent": lambda: make_post(DOWN),
        "silent, and look-ups fail": lambda: make_post(DOWN, evidence=DOWN),
        "misconfigured": lambda: make_post(Misconfigured("unknown sender")),
        "unprepared": lambda: make_post(prepare=prepare),
    }[kind]()
    begin, receives, tries = clock(), 0, list[tuple[float, str]]()
    before: Counter[str] = Counter()
    while (second := clock() - begin) < UNTIL:
        receives += 1
        returned = worker.handle(item(), receives=receives)
        counts = Counter({name: int(number) for name, number in counted().items()})
        tries += [(second, name) for name in (counts - before).elements() if name in UNANSWERED]
        before = counts
        clock.advance(returned["r-0"])
    assert tries == failing_tries(
        kind, UNTIL, lease=LEASE, base=4, cap=600, misconfigured=20, random=lambda: 1.0
    )
