"""Settings of webhooks: tries, and allowed targets."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator, Field

from mailroom_stacks.settings.queues import QueueRules, visibility_of
from mailroom_stacks.settings.sections import OnUnknown, Section
from mailroom_stacks.settings.times import Times

# SQS ends a visibility timeout 12 hours after the receive. One hour of that is reserved for the function.
LONGEST_DELAY = 39_600
MOST_DELAYS = 999
"""Maximum number of delays: one less than the number of receives that SQS allows."""


def _network(text: str) -> str:
    """Validate a CIDR block without host bits, and return it."""
    try:
        ip_network(text)
    except ValueError:
        raise ValueError("is not a CIDR block without host bits; use one such as 10.1.0.0/16") from None
    return text


class Webhook(Section):
    """Settings of the webhook queue and its sender."""

    maximum_concurrency: int = Field(default=10, ge=2, le=1000)
    """Maximum number of sender functions at a time."""
    delays_seconds: tuple[Annotated[int, Field(ge=0, le=LONGEST_DELAY)], ...] = Field(
        default=(
            *(5, 15, 30, 60, 120, 300, 600, 900, 1_800, 1_800, 3_600, 3_600),
            *(7_200, 7_200, 14_400, 14_400, 21_600, 28_800, 39_600),
        ),
        min_length=1,
        max_length=MOST_DELAYS,
    )
    """Waits in seconds after each failed try. The try after the last wait is the last one."""
    allowed_networks: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    """CIDR blocks that are not public but that webhooks may reach. Metadata addresses are never allowed."""
    allowed_ports: tuple[Annotated[int, Field(ge=1, le=65_535)], ...] = (443, 8443)
    """Ports that webhooks may reach; an empty list allows all ports."""
    on_unknown: OnUnknown = "resend"
    """Action after a crash that leaves no evidence of whether a webhook was sent, as for a channel."""


def webhook_rules(webhook: Webhook, times: Times) -> QueueRules:
    """Return the rules of the webhook queue: one receive is one try, and `delays_seconds` are the waits
    between them."""
    visibility = visibility_of(times.webhook_timeout)
    longest = [max(delay, times.retry_after_cap, times.misconfigured) for delay in webhook.delays_seconds]
    tries = len(longest) + 1
    return QueueRules(
        lease=times.webhook_timeout + times.lease_margin,
        visibility=visibility,
        max_receives=tries,
        longest_stay=sum(longest) + tries * visibility,
    )
