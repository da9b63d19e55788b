"""The gap between submits, kept by one worker."""

from itertools import pairwise

import pytest

from mailroom.delivery.worker import Pace
from tests.support.unit.shared import FakeClock


def pace(clock: FakeClock, gap: float) -> Pace:
    made = Pace(gap, clock, clock.sleep)
    made.begin()
    return made


def test_the_first_submit_of_an_invocation_waits_as_well(clock: FakeClock) -> None:
    pace(clock, 0.5).wait()
    assert clock.slept == [0.5]


def test_each_submit_waits_a_gap_after_the_last(clock: FakeClock) -> None:
    paced = pace(clock, 0.5)
    starts = []
    for _ in range(3):
        paced.wait()
        starts.append(clock())
    assert [later - earlier for earlier, later in pairwise(starts)] == [0.5, 0.5]


def test_time_that_passed_since_the_last_submit_counts(clock: FakeClock) -> None:
    paced = pace(clock, 0.5)
    paced.wait()
    clock.advance(0.375)
    assert paced.left() == pytest.approx(0.125)
    paced.wait()
    assert clock.slept[-1] == pytest.approx(0.125)


def test_after_a_long_while_nothing_is_left_to_wait(clock: FakeClock) -> None:
    paced = pace(clock, 0.5)
    clock.advance(60)
    assert paced.left() == 0
    paced.wait()
    assert clock.slept == [0]


def test_a_new_invocation_starts_its_gap_anew(clock: FakeClock) -> None:
    paced = pace(clock, 0.5)
    clock.advance(3600)
    paced.begin()
    paced.wait()
    assert clock.slept == [0.5]


def test_without_a_gap_nobody_sleeps(clock: FakeClock) -> None:
    pace(clock, 0).wait()
    assert clock.slept == []
