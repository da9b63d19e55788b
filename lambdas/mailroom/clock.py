"""Time, as tests inject it."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], float]
"""Seconds since the epoch, like `time.time`."""


def milliseconds(seconds: float) -> int:
    """Epoch milliseconds, the unit of `startedAt` and `completedAt`."""
    return int(seconds * 1000)


def iso(seconds: float) -> str:
    """ISO 8601 in UTC with milliseconds, the form of `updatedAt`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def epoch(text: str) -> float:
    """Epoch seconds of an ISO 8601 time; one without an offset is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
