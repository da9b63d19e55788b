"""What comes back from providers."""

from collections.abc import Iterator

from pydantic import Field

from stacks.settings.monitoring import NEARLY_ALL, Monitoring
from stacks.settings.queues import Retention, queue_faults, worker_rules
from stacks.settings.sections import QueueWorker
from stacks.settings.sentences import number
from stacks.settings.webhook import Webhook


class Feedback(QueueWorker):
    """The feedback queue and its function. What one message caused comes close together, and one invocation
    that has it all writes less."""

    batch_size: int = Field(default=100, ge=1, le=10_000)
    """How many events an invocation gets at most; fewer where they are over Lambda's 6 MB together."""
    batch_window_seconds: int = Field(default=2, ge=0, le=300)
    """How long the first of a batch may wait for the others."""
    maximum_concurrency: int = Field(default=10, ge=2, le=1000)


WITHOUT_WINDOW = 10
"""The most messages that Lambda takes at once from a queue that it may not wait at."""
EVENT_SECONDS = 0.1
"""What is reckoned for one event: its writes take some 10 ms, and ten times as long while DynamoDB limps."""


def feedback_faults(
    feedback: Feedback, callbacks: Webhook, monitoring: Monitoring, lease_margin: int, keep: Retention
) -> Iterator[str]:
    """Rules of the section `feedback`."""
    yield from _broken_batch(feedback)
    yield from _broken_concurrency(feedback, callbacks, monitoring)
    yield from queue_faults("feedback", feedback, worker_rules(feedback, lease_margin), keep)


def _broken_batch(feedback: Feedback) -> Iterator[str]:
    size, timeout = feedback.batch_size, feedback.timeout_seconds
    if size > WITHOUT_WINDOW and feedback.batch_window_seconds < 1:
        yield (
            f"feedback.batch_window_seconds: {feedback.batch_window_seconds} lets Lambda take "
            f"{WITHOUT_WINDOW} messages at once and no more, and batch_size is {size}; use 1 or more, or "
            f"lower batch_size to {WITHOUT_WINDOW}."
        )
    if size * EVENT_SECONDS >= timeout:
        fits = int((timeout - 1e-9) / EVENT_SECONDS)
        yield (
            f"feedback.batch_size: {size} x {EVENT_SECONDS} s an event = {number(size * EVENT_SECONDS)} s "
            f"must be under timeout_seconds {timeout}; use {fits} or less."
        )


def _broken_concurrency(feedback: Feedback, webhook: Webhook, monitoring: Monitoring) -> Iterator[str]:
    """What follows from sending may not take all functions that the account has, and so end sending."""
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
