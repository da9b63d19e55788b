"""Waits between two receives of a record."""

from collections.abc import Callable


def backoff(receives: int, base: float, cap: float, random: Callable[[], float]) -> float:
    """Seconds to wait after the n-th receive: base, 2·base, 4·base … up to cap, of which 50 to 100 %, so that
    what failed together does not come back together.

    At least half, because the queue's maxReceiveCount is derived from the shortest sum of these waits.
    """
    whole = min(cap, base * 2.0 ** min(receives - 1, 32))
    return whole * (0.5 + random() / 2)
