"""Counts what went wrong with messages, by channel and reason, for dashboards and alarms."""

from collections import Counter
from collections.abc import Container

from mailroom.ledger.change import LedgerChange
from mailroom.telemetry import count_by

FAILED = ("failed", "undelivered", "bounced", "complained")
"""Statuses that a producer did not wish for. `suppressed` is none: nothing went wrong, nothing was sent."""
REASON_CHARACTERS = 64
UNKNOWN = "unknown"
"""The channel of what named one that there is not."""


class Failures:
    """Those of one batch of the ledger's stream, of a stage with these channels. A record that the stream
    repeats is counted again."""

    def __init__(self, channels: Container[str]) -> None:
        self._channels = channels
        self._seen: Counter[tuple[str, str]] = Counter()

    def see(self, change: LedgerChange) -> None:
        """Count a change, if it tells of a failure."""
        if change.moved and change.status in FAILED:
            # A producer may write anything there, and each name would be a metric.
            channel = change.key.event_type if change.key.event_type in self._channels else UNKNOWN
            self._seen[channel, _reason(change)] += 1

    def count(self) -> None:
        """Write what was seen: `Failed`, by channel and by channel and reason."""
        for (channel, reason), times in self._seen.items():
            count_by("Failed", times, {"channel": channel}, {"channel": channel, "reason": reason})


def _reason(change: LedgerChange) -> str:
    """The error's code; what a provider told later is its own reason. There are a few dozen at most, and each
    is a metric to be paid for."""
    error = change.new.get("error")
    code = error.get("code") if change.status == "failed" and isinstance(error, dict) else None
    return str(code or change.status)[:REASON_CHARACTERS]
