"""Conversions of times, the waits between two receives of a queue record, and the type of clocks that are
passed as arguments."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

Clock = Callable[[], float]
"""Function that returns epoch seconds, such as `time.time`."""
END_OF_TIME = 1e11
"""Time in epoch seconds, about 3,000 years from today. A greater number is a mistake, and may be too large
for a date."""
_SHARE = 0.5
"""Share of each wait that is fixed; the rest is random."""


def milliseconds(seconds: float) -> int:
    """Return epoch seconds as epoch milliseconds, the unit of the ledger's `startedAt` and
    `completedAt`."""
    return int(seconds * 1000)


def iso(seconds: float) -> str:
    """Return epoch seconds as ISO 8601 in UTC with milliseconds, the form of the ledger's `updatedAt`.
    Raises ValueError, OverflowError or OSError for a year before 1 or after 9999."""
    return f"{_second(int(seconds))}.{int(seconds * 1000) % 1000:03d}Z"


@lru_cache(maxsize=4)  # cached, because many writes happen in the same second
def _second(seconds: int) -> str:
    # The text is cut from `isoformat`, because `strftime` omits the leading zeros of early years.
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


def assumed_utc(text: str | None) -> str | None:
    """Return an ISO 8601 time without an offset as a time in UTC. Returns None for a time with an offset."""
    return None if text is None or datetime.fromisoformat(text).tzinfo else iso(epoch(text))


def epoch(text: str) -> float:
    """Return an ISO 8601 time as epoch seconds. A time without an offset is in UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def backoff(receives: int, base: float, cap: float, random: Callable[[], float]) -> float:
    """Return the seconds to wait after receive number `receives` of a queue record: 50 to 100 % of base,
    2·base, 4·base … cap.

    The random part keeps records that failed together from being retried together. A queue's maxReceiveCount
    is derived from the fixed part, which is the shortest sum of these waits.
    """
    longest = min(cap, base * 2.0 ** min(receives - 1, 32))
    return longest * (_SHARE + random() * (1 - _SHARE))
