"""The gap between submits of one worker, and the rate of several workers."""

import heapq
from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest

from mailroom.delivery.worker import Pace
from tests.support.unit.shared import FakeClock

LONG = 3600.0


def pace(clock: FakeClock, gap: float) -> Pace:
    return Pace(gap, clock, clock.sleep)


def test_each_submit_waits_for_the_configured_gap_after_the_previous_submit(clock: FakeClock) -> None:
    paced = pace(clock, 0.5)
    starts = []
    for _ in range(3):
        paced.wait(LONG)
        starts.append(clock())
    assert [later - earlier for earlier, later in pairwise(starts)] == [0.5, 0.5]


def test_a_submit_waits_only_for_the_part_of_the_gap_that_has_not_passed(clock: FakeClock) -> None:
    paced = pace(clock, 0.5)
    paced.wait(LONG)
    clock.advance(0.375)
    assert paced.left() == pytest.approx(0.125)
    paced.wait(LONG)
    assert clock.slept[-1] == pytest.approx(0.125)


def test_the_first_submit_and_a_submit_after_a_long_pause_do_not_wait(clock: FakeClock) -> None:
    paced = pace(clock, 0.5)
    for _ in range(2):
        assert (paced.left(), paced.wait(LONG)) == (0, True)
        clock.advance(60)
    assert clock.slept == []


def test_a_worker_does_not_wait_for_the_gap_if_the_submit_would_then_begin_too_late(clock: FakeClock) -> None:
    paced = pace(clock, 0.5)
    paced.wait(LONG)
    assert not paced.wait(0.25)
    assert clock.slept == []
    assert paced.left() == 0.5


def test_a_function_waits_for_the_gap_after_its_last_submit_before_it_returns(clock: FakeClock) -> None:
    paced = pace(clock, 0.5)
    paced.wait(LONG)
    clock.advance(0.125)
    paced.rest()
    assert clock.slept == [pytest.approx(0.375)]
    paced.rest()
    assert len(clock.slept) == 1


def test_a_worker_with_a_gap_of_zero_does_not_sleep(clock: FakeClock) -> None:
    paced = pace(clock, 0)
    assert paced.wait(LONG)
    paced.rest()
    assert clock.slept == []


RATE = 7.0
BATCH = 10


def submits(arrivals: list[float], workers: int, seconds: float) -> Iterator[tuple[float, float]]:
    """Yield the times of arrival and of submit of each message. `workers` take batches of the waiting
    messages at once, each batch in a new environment. A submit takes `seconds`."""
    free = [0.0] * workers
    at = 0
    while at < len(arrivals):
        clock = FakeClock(max(heapq.heappop(free), arrivals[at]))
        paced = pace(clock, workers / RATE)
        batch = [arrival for arrival in arrivals[at : at + BATCH] if arrival <= clock()]
        for arrival in batch:
            paced.wait(LONG)
            yield arrival, clock()
            clock.advance(seconds)
        paced.rest()
        heapq.heappush(free, clock())
        at += len(batch)


def poisson(rate: float, count: int) -> list[float]:
    random, now = Random(7), 0.0
    return [now := now + random.expovariate(rate) for _ in range(count)]


@pytest.mark.parametrize("seconds", [0.1])
@pytest.mark.parametrize("workers", [2, 4, 10])
@pytest.mark.parametrize(("load", "rate"), [(0.5, 0.5), (1.0, 1.0), (3.0, 1.0)])
def test_all_workers_together_keep_to_the_configured_rate_at_low_full_or_excess_load(
    workers: int, seconds: float, load: float, rate: float
) -> None:
    sent = sorted(when for _, when in submits(poisson(load * RATE, 5_000), workers, seconds))
    assert len(sent) / (sent[-1] - sent[0]) == pytest.approx(rate * RATE, rel=0.05)
    # No window of ten seconds exceeds the rate by more than one burst.
    window = int(10 * RATE)
    shortest = min(late - early for early, late in zip(sent, sent[window + workers :], strict=False))
    assert shortest >= 10 * 0.95


@pytest.mark.parametrize("workers", [2, 4, 10])
def test_a_message_that_arrives_while_all_workers_are_idle_is_submitted_at_once(workers: int) -> None:
    lone = [at * 60.0 for at in range(1, 100)]
    assert all(came == sent for came, sent in submits(lone, workers, 0.1))
