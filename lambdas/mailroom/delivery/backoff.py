"""The wait between two receives of a record. Workers wait so long, and the queues' settings count on it."""

from collections.abc import Callable

_SHARE = 0.5
"""Share of a wait that is the same for all workers; the rest is random."""


def backoff(receives: int, base: float, cap: float, random: Callable[[], float]) -> float:
    """Return the seconds to wait after receive number `receives`: 50 to 100 % of base, 2·base, 4·base … cap.

    The random part keeps records that failed together from coming back together. The fixed part is what a
    queue's maxReceiveCount is derived from: the shortest sum of these waits.
    """
    longest = min(cap, base * 2.0 ** min(receives - 1, 32))
    return longest * (_SHARE + random() * (1 - _SHARE))
