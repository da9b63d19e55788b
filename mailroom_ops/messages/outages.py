"""Outages: troubles that keep many of the newest messages from being sent."""

from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from mailroom.ledger.status_reader import MessageStatus
from mailroom_ops.shared.times import short

SAMPLE = 500
"""Number of newest messages that are searched for outages."""
_OF_MAILROOM = ("no_time", "received_too_often", "restarted", "other_try")
"""Codes of troubles that do not come from a provider, and end by themselves."""
OUTAGE = 10
"""Minimum number of messages with the same trouble that count as an outage."""


class Outage(Struct, frozen=True):
    """Trouble that many messages share."""

    channel: str
    trouble: str
    """Provider's response, or the error if the provider sent no response."""
    sentence: str
    """Provider's response, number of messages, and the time when the first was put."""


def outages_among(messages: Sequence[MessageStatus]) -> list[Outage]:
    """Return the outages that the newest messages show. Dead letters do not count: they
    keep their trouble after an outage has ended."""
    put_times = defaultdict[tuple[str, str], list[str]](list)
    for message in messages:
        trouble = message.trouble or {}
        ends_by_itself = trouble.get("code") in _OF_MAILROOM
        if trouble and not ends_by_itself and "dead_lettered_at" not in message.times:
            put_times[message.event_type, trouble["message"]].append(message.times["putAt"])
    of = f"of the newest {len(messages):,} messages have this trouble; the first was put on"
    return [
        Outage(channel, words, f"{channel}: {words}. {len(times):,} {of} {short(min(times))}.")
        for (channel, words), times in put_times.items()
        if len(times) >= OUTAGE
    ]
