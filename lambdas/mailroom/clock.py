"""Time, as tests inject it."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

Clock = Callable[[], float]
"""Seconds since the epoch, like `time.time`."""
END_OF_TIME = 1e11
"""Epoch seconds, in some 3,000 years: beyond it stands a mistake, or a number that no clock can hold."""


def milliseconds(seconds: float) -> int:
    """Epoch milliseconds, the unit of `startedAt` and `completedAt`."""
    return int(seconds * 1000)


def iso(seconds: float) -> str:
    """ISO 8601 in UTC with milliseconds, the form of `updatedAt`. Raises ValueError, OverflowError or OSError
    for a year before 1 or after 9999."""
    return f"{_second(int(seconds))}.{int(seconds * 1000) % 1000:03d}Z"


@lru_cache(maxsize=4)  # many writes share a second
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]  # strftime cuts the zeros of early years


def epoch(text: str) -> float:
    """Epoch seconds of an ISO 8601 time; one without an offset is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
