"""The next attempt of a fax, built from its ledger item alone: the mailbox's item may be gone by then."""

from typing import Any

from msgspec import Struct

from mailroom.ledger.change import LedgerChange

_SAID_AGAIN = ("to", "pdf_url", "payload_ref", "from", "expires_at", "callback_url")


class Schedule(Struct, frozen=True):
    """When it is tried again: after `delay` seconds, each further time `growth` times that, up to `cap`."""

    delay: float
    growth: float
    cap: float

    def after(self, attempts: int) -> float:
        """Seconds from the end of that many attempts to the next one."""
        grown: float = self.delay * self.growth ** max(0, attempts - 1)
        return min(self.cap, grown)


def retry_of(change: LedgerChange, schedule: Schedule) -> dict[str, Any] | None:
    """The body of the fax queue for what comes next; None where this change calls for no attempt."""
    if change.key.event_type != "fax" or change.status != "retrying" or not change.moved:
        return None
    again = {name: change.new[name] for name in _SAID_AGAIN if name in change.new}
    wait = 0.0 if change.reopened else schedule.after(change.attempts)
    return {
        "fax_id": change.key.id,
        **again,
        "attempt": change.attempts + 1,
        "not_before": round(change.at + wait, 3),
    }
