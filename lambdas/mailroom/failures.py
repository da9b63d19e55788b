"""Counts what went wrong with messages, by channel and reason, for dashboards and alarms."""

from collections import Counter

from mailroom.change import LedgerChange
from mailroom.telemetry import count_by

FAILED = ("failed", "undelivered", "bounced", "complained")
"""Statuses that a producer did not wish for. `suppressed` is none: nothing went wrong, nothing was sent."""
REASON_CHARACTERS = 64


class Failures:
    """Those of one batch of the ledger's stream. A record that the stream repeats is counted again."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()

    def see(self, change: LedgerChange) -> None:
        """Count a change, if it tells of a failure."""
        if change.moved and change.status in FAILED:
            self._seen[change.key.event_type, _reason(change)] += 1

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
