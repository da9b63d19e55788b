"""Where the messages stand: the demo's table of channels and final statuses."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

CHANNELS = ("mail", "sms", "push", "fax", "webhook")
STATUSES = (
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
)
"""In the order of what is known, as docs/messages.md has them."""
Key = tuple[str, str]


def standing(ledger: Mapping[Key, Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """How many messages of each channel stand where, both in their usual order; what is no channel's is left
    out."""
    counts = Counter((event_type, str(row.get("status"))) for (_, event_type), row in ledger.items())
    return {
        channel: {status: counts[channel, status] for status in STATUSES if counts[channel, status]}
        for channel in CHANNELS
    }


def reached(expected: Mapping[Key, str], statuses: Mapping[Key, str]) -> int:
    """How many messages stand where they must in the end."""
    return sum(statuses.get(key) == status for key, status in expected.items())


def unreached(expected: Mapping[Key, str], statuses: Mapping[Key, str]) -> list[str]:
    """The ids of the others, with the status that each is in."""
    return [
        f"{key[0]} ({statuses.get(key, 'nowhere')})"
        for key, status in expected.items()
        if statuses.get(key) != status
    ]
