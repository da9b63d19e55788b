"""Settings of the function that processes providers' events."""

from pydantic import Field

from mailroom_stacks.settings.queues import QueueRules, queue_rules
from mailroom_stacks.settings.sections import Section
from mailroom_stacks.settings.times import Times

FEEDBACK_BATCH = 100
"""Maximum number of events in one invocation. It is lower if together they exceed Lambda's limit of 6 MB. The
events of a message come within a short time, and an invocation that gets all of them writes less."""
FEEDBACK_WINDOW = 2
"""Batch window in seconds, for which the first event of a batch waits for others."""


class Feedback(Section):
    """Settings of the feedback queue and its function."""

    maximum_concurrency: int = Field(default=10, ge=2, le=1000)
    """Maximum number of functions that process providers' events at a time."""


def feedback_rules(times: Times) -> QueueRules:
    """Return the rules of the feedback queue."""
    throttling = times.provider_throttling
    return queue_rules(times, times.feedback_timeout, throttling=throttling, window=FEEDBACK_WINDOW)
