"""The type of injected clocks, and conversions of times."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

Clock = Callable[[], float]
"""A function that returns epoch seconds, such as `time.time`."""
END_OF_TIME = 1e11
"""Epoch seconds some 3,000 years from today. A greater number is a mistake, and may be too large for a
date."""


def milliseconds(seconds: float) -> int:
    """Convert epoch seconds to epoch milliseconds, the unit of `startedAt` and `completedAt`."""
    return int(seconds * 1000)


def iso(seconds: float) -> str:
    """Format epoch seconds as ISO 8601 in UTC with milliseconds, the form of `updatedAt`. Raises ValueError,
    OverflowError or OSError for a year before 1 or after 9999."""
    return f"{_second(int(seconds))}.{int(seconds * 1000) % 1000:03d}Z"


@lru_cache(maxsize=4)  # cached, because many writes happen in the same second
def _second(seconds: int) -> str:
    # The text is cut from `isoformat`, because `strftime` omits the leading zeros of early years.
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


def assumed_utc(text: str | None) -> str | None:
    """Return a time in ISO 8601 as UTC if it lacks an offset, or else None."""
    return None if text is None or datetime.fromisoformat(text).tzinfo else iso(epoch(text))


def epoch(text: str) -> float:
    """Parse an ISO 8601 time into epoch seconds; without an offset it is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
