"""Waits between two receives of a queue record. Workers use these waits, and the settings of the queues are
derived from them."""

from collections.abc import Callable

_SHARE = 0.5
"""Share of each wait that is fixed; the rest is random."""


def backoff(receives: int, base: float, cap: float, random: Callable[[], float]) -> float:
    """Return the seconds to wait after receive number `receives`: 50 to 100 % of base, 2·base, 4·base … cap.

    The random part keeps records that failed together from being retried together. A queue's maxReceiveCount
    is derived from the fixed part, which is the shortest sum of these waits.
    """
    longest = min(cap, base * 2.0 ** min(receives - 1, 32))
    return longest * (_SHARE + random() * (1 - _SHARE))
