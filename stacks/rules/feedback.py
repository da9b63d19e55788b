"""Rules of what comes back from providers."""

from collections.abc import Iterator

from stacks.derived import worker_rules
from stacks.rules.queues import broken_queue
from stacks.sentences import number
from stacks.settings import NEARLY_ALL, Feedback, Monitoring, Retention, Webhook

WITHOUT_WINDOW = 10
"""The most messages that Lambda takes at once from a queue that it may not wait at."""
EVENT_SECONDS = 0.1
"""What is reckoned for one event: its writes take some 10 ms, and ten times as long while DynamoDB limps."""


def broken_feedback(
    feedback: Feedback, callbacks: Webhook, monitoring: Monitoring, lease_margin: int, keep: Retention
) -> Iterator[str]:
    """Rules of the section `feedback`."""
    yield from _batch(feedback)
    yield from _concurrency(feedback, callbacks, monitoring)
    yield from broken_queue("feedback", feedback, worker_rules(feedback, lease_margin), keep)


def _batch(feedback: Feedback) -> Iterator[str]:
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


def _concurrency(feedback: Feedback, webhook: Webhook, monitoring: Monitoring) -> Iterator[str]:
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
