"""Statuses of a message, in the order of their certainty: a status only moves forward."""

from typing import Literal, get_args

Status = Literal[
    "scheduled",
    "sending",
    "retrying",
    "failed",
    "suppressed",
    "cancelled",
    "sent",
    "undelivered",
    "delivered",
    "bounced",
    "complained",
]
"""Statuses, from the least to the most certain. A provider's event may only replace a status that precedes
the event's status, so the last status does not depend on the order and number of events. A bounce or a
complaint may follow a delivery. Statuses of messages that were given up precede the statuses that a provider
proves."""

_ORDER: tuple[Status, ...] = get_args(Status)
SILENT: tuple[Status, ...] = ("sending", "scheduled")
"""Statuses of a message that is on the way to an outcome. After a crash, the history of a message may contain
one of these statuses twice in a row."""
FAILED: tuple[Status, ...] = ("failed", "undelivered", "bounced", "complained")
"""Statuses of a failure. `suppressed` is not a failure: the message was withheld on purpose."""
CODES: dict[str, tuple[str, ...]] = {
    "undelivered": ("error_code", "bounce_type"),
    "bounced": ("bounce_type",),
    "complained": ("complaint_type",),
}
"""Ledger attributes that hold the reason of a failure, by the status that a provider reports."""


def before(status: Status) -> tuple[Status, ...]:
    """Return the statuses that `status` may replace."""
    return _ORDER[: rank(status)]


def rank(status: Status) -> int:
    """Return the place of a status in the order of certainty, from 0."""
    return _ORDER.index(status)
