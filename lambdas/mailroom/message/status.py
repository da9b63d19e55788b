"""The statuses of a message and the one way they may move: forward."""

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
"""In the order of what is known: a provider's event may only replace a status that stands before its own,
so any order and any number of events end the same. A bounce or a complaint may follow a delivery. What was
given up stands before what a provider proves."""

_ORDER: tuple[Status, ...] = get_args(Status)


def before(status: Status) -> tuple[Status, ...]:
    """The statuses that `status` may replace."""
    return _ORDER[: rank(status)]


def rank(status: Status) -> int:
    """Its place in the one order: a higher one is known better."""
    return _ORDER.index(status)
