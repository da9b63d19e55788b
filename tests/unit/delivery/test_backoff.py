"""Waits that grow, within the bounds that the queue's settings are derived from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailroom.clock import backoff

receives = st.integers(1, 10_000)
bases = st.floats(0.1, 100)
caps = st.floats(1, 43_200)
chances = st.floats(0, 1, exclude_max=True)


@given(receives, bases, caps, chances)
def test_a_backoff_is_between_half_and_all_of_its_exponential_step_and_never_over_the_cap(
    n: int, base: float, cap: float, chance: float
) -> None:
    step = min(cap, base * 2 ** min(n - 1, 100))
    assert step / 2 <= backoff(n, base, cap, lambda: chance) <= min(step, cap)


@pytest.mark.parametrize(("n", "seconds"), [(1, 2), (2, 4), (3, 8), (7, 128), (8, 200), (1000, 200)])
def test_backoff_doubles_with_each_receive_up_to_the_cap(n: int, seconds: float) -> None:
    assert backoff(n, 2, 200, lambda: 1.0) == seconds
