"""How long workers really wait between receives."""

from mailroom.clock import backoff
from mailroom_stacks.settings.queues import Waits


def shortest_total(waits: Waits, receives: int) -> float:
    """The least time, in seconds, between the first and the last of so many receives."""
    return sum(backoff(receive, waits.base, waits.cap, lambda: 0.0) for receive in range(1, receives))
