"""The webhook queue's numbers. All times are in seconds."""

from stacks.derived.queues import QueueRules, visibility_of
from stacks.settings import Webhook


def webhook_rules(webhook: Webhook, lease_margin: int) -> QueueRules:
    """One receive is one try, and `delays_seconds` are the waits between them."""
    visibility = visibility_of(webhook, webhook)
    longest = [
        max(delay, webhook.retry_after_cap_seconds, webhook.misconfigured_seconds)
        for delay in webhook.delays_seconds
    ]
    tries = len(longest) + 1
    return QueueRules(
        lease=webhook.timeout_seconds + lease_margin,
        visibility=visibility,
        max_receives=tries,
        longest_stay=sum(longest) + tries * visibility,
    )
