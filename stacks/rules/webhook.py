"""Rules of webhooks."""

from collections.abc import Iterator

from stacks.derived import SQS_RECEIVES, webhook_rules
from stacks.rules.channels import broken_memory
from stacks.rules.queues import Lever, broken_queue
from stacks.settings import Retention, Webhook

LEVER = Lever(
    setting="delays_seconds",
    formula="one for each try",
    remedy=f"use {SQS_RECEIVES - 1} delays or fewer",
)


def broken_webhook(webhook: Webhook, lease_margin: int, keep: Retention) -> Iterator[str]:
    """Rules of the section `webhook`."""
    yield from _batch(webhook)
    yield from broken_memory("webhook", webhook.memory_mb)
    yield from broken_queue("webhook", webhook, webhook_rules(webhook, lease_margin), keep, LEVER)


def _batch(webhook: Webhook) -> Iterator[str]:
    """A receive is a try: none may be used up by waiting for the others of its batch."""
    one = webhook.request_seconds + webhook.record_seconds
    if webhook.batch_size * one >= webhook.timeout_seconds:
        fits = (webhook.timeout_seconds - 1) // one
        remedy = f"use {fits} or less" if fits else "raise timeout_seconds or lower request_seconds"
        yield (
            f"webhook.batch_size: {webhook.batch_size} x (request_seconds {webhook.request_seconds} + "
            f"record_seconds {webhook.record_seconds}) = {webhook.batch_size * one} s must be under "
            f"timeout_seconds {webhook.timeout_seconds}; {remedy}."
        )
