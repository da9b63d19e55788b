"""The webhook queue's numbers. All times are in seconds."""

from stacks.derived.queues import QueueRules, visibility_of
from stacks.settings import Settings


def webhook_rules(settings: Settings) -> QueueRules:
    """One receive is one try, and `delays_seconds` are the waits between them."""
    webhook = settings.webhook
    visibility = visibility_of(webhook, webhook)
    longest = [
        max(delay, webhook.retry_after_cap_seconds, webhook.misconfigured_seconds)
        for delay in webhook.delays_seconds
    ]
    tries = len(longest) + 1
    return QueueRules(
        lease=webhook.timeout_seconds + settings.lease_margin_seconds,
        visibility=visibility,
        max_receives=tries,
        longest_stay=sum(longest) + tries * visibility,
    )
