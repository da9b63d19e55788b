"""Outages: troubles that keep many of the newest messages from being sent."""

from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from mailroom.ledger.reader import MessageStatus
from mailroom_ops.times import short

SAMPLE = 500
"""Number of newest messages among which outages are looked for."""
OUTAGE = 10
"""Minimum number of messages with the same trouble."""


class Outage(Struct, frozen=True):
    """Trouble that many messages share."""

    channel: str
    trouble: str
    """Response of the provider, or the error in its place."""
    count: int
    since: str
    """Time when the first of the messages was put (ISO 8601)."""
    looked_at: int
    """Number of newest messages among which the messages were counted."""

    @property
    def sentence(self) -> str:
        """Sentence about the outage: provider's response, number of messages, and the time of the first."""
        return (
            f"{self.channel}: {self.trouble}. {self.count:,} of the newest {self.looked_at:,} messages wait "
            f"for that; the first was put on {short(self.since)}."
        )


def outages_among(messages: Sequence[MessageStatus]) -> list[Outage]:
    """Return the outages that the newest messages show, the largest first. Dead letters do not count: they
    keep their trouble after an outage has ended."""
    put_times = defaultdict[tuple[str, str], list[str]](list)
    for message in messages:
        if message.trouble and "dead_lettered_at" not in message.times:
            put_times[message.event_type, message.trouble["message"]].append(message.times["putAt"])
    outages = [
        Outage(channel, trouble, len(times), min(times), len(messages))
        for (channel, trouble), times in put_times.items()
        if len(times) >= OUTAGE
    ]
    return sorted(outages, key=lambda outage: -outage.count)
