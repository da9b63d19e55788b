"""Settings of the function that processes providers' events."""

from collections.abc import Iterator

from pydantic import Field

from mailroom_stacks.settings.monitoring import NEARLY_ALL, Monitoring
from mailroom_stacks.settings.queues import QueueRules, queue_rules
from mailroom_stacks.settings.sections import Section
from mailroom_stacks.settings.times import Times
from mailroom_stacks.settings.webhook import Webhook

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


def feedback_faults(feedback: Feedback, webhook: Webhook, monitoring: Monitoring) -> Iterator[str]:
    """Yield a violation if the functions for events and callbacks could use the account's whole concurrency,
    because then no messages could be sent."""
    events, callbacks = feedback.maximum_concurrency, webhook.maximum_concurrency
    many, together = monitoring.many_functions, events + callbacks
    if together >= many:
        yield (
            f"feedback.maximum_concurrency: {events} + webhook.maximum_concurrency {callbacks} = {together} "
            f"functions for events and callbacks must be under {many}, at which the alarm concurrency rings "
            f"({NEARLY_ALL} x monitoring.concurrency_quota {monitoring.concurrency_quota}), so "
            f"that some are left for sending; use {many - 1} or less in all, or have the account's quota "
            "raised."
        )
