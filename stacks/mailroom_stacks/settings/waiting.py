"""Thresholds of the alarms on the age of a queue's oldest message."""

import math

from mailroom.ledger.waits import AHEAD_SECONDS
from mailroom_stacks.settings.constants import OF_FALLBACK
from mailroom_stacks.settings.settings import Settings

USUAL = 15
MINUTES = {
    # A slow database or endpoint is not urgent.
    "collect": 60,
    "webhook": 60,
    "fax-retry": 60,
    # A line sends one fax after the other.
    "fax": 240,
    # A campaign may take half a day.
    "mail-bulk": 720,
    "audience": 720,
}
"""Thresholds in minutes by queue; the threshold of other queues is USUAL."""
LONGEST_DELAY = AHEAD_SECONDS
"""Longest delay of a message in its own queue, in seconds. SQS does not document whether a message's age
includes the delay."""
COUNTED_RECEIVES = 3
"""Number of receives after which SQS no longer includes a message in the age of the oldest message."""


def waiting_seconds(settings: Settings, queue: str) -> int:
    """Return the age in seconds of the oldest message in `queue` (its short name) at which an alarm rings:
    the setting `monitoring.waiting_minutes`, or else the usual threshold, which is higher if messages wait in
    the queue by design."""
    minutes = settings.monitoring.waiting_minutes.get(queue)
    if minutes is not None:
        return minutes * 60
    queue = queue.removesuffix(OF_FALLBACK)
    meant = math.ceil(_meant(settings, queue) / 60)
    return max(MINUTES.get(queue, USUAL), meant + USUAL if meant else 0) * 60


def _meant(settings: Settings, queue: str) -> float:
    """Return the seconds for which messages of `queue` wait by design."""
    if queue == "fax-retry" and settings.fax:
        return settings.fax.retry_delay_seconds
    if queue == "webhook":
        return LONGEST_DELAY + sum(settings.webhook.delays_seconds[:COUNTED_RECEIVES])
    # Messages of a FIFO queue have no delays of their own: a fax waits in the retry queue.
    delayed = {row.queue for row in settings.lane_rows()}
    return LONGEST_DELAY if queue in delayed else 0
