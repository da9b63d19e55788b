"""Webhooks: how often they are tried, and where they may go."""

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from mailroom_stacks.settings.queues import (
    SQS_RECEIVES,
    QueueRules,
    Retention,
    RetrySetting,
    queue_faults,
    visibility_of,
)
from mailroom_stacks.settings.sections import FailurePolicy, Function, Polling, fixed

LONGEST_DELAY = 39_600  # visibility ends 12 hours after the receive: an hour of that is the function's
_NEVER = tuple(map(ip_network, ("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32")))
"""Link-local, and AWS's own: credentials are handed out there to whoever asks. The sender refuses them
whatever the setting says, so one that lies wholly inside says nothing."""


def _network(text: str) -> str:
    """A network in CIDR, with none of its host bits set."""
    try:
        network = ip_network(text)
    except ValueError:
        raise ValueError(
            "is not a network; write it like 10.1.0.0/16, all bits past the prefix zero"
        ) from None
    if any(network.network_address in each and network.prefixlen >= each.prefixlen for each in _NEVER):
        raise ValueError("holds only link-local or metadata addresses, which are never open; remove it")
    return text


class Webhook(Function, Polling, FailurePolicy):
    """The webhook queue and its sender."""

    batch_size: int = fixed(1)
    """One by one, a slow endpoint delays nobody else's."""
    maximum_concurrency: int = Field(default=10, ge=2, le=1000)
    """Functions at once. With those of `feedback` they leave some of the account's for sending."""
    request_seconds: int = fixed(15)
    """The longest that one request may take as a whole, from the name's resolution to the last byte. With
    `record_seconds` it fits into the time-out."""
    delays_seconds: tuple[Annotated[int, Field(ge=0, le=LONGEST_DELAY)], ...] = Field(
        default=(
            *(5, 15, 30, 60, 120, 300, 600, 900, 1_800, 1_800, 3_600, 3_600),
            *(7_200, 7_200, 14_400, 14_400, 21_600, 28_800, 39_600),
        ),
        min_length=1,
    )
    """The wait after each try that failed; so many tries, and one more, then the dead-letter queue."""
    retry_after_cap_seconds: int = fixed(3_600)
    """The longest `Retry-After` of an endpoint that is honoured."""
    allowed_networks: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    """Networks that are not public and yet may be sent to, in CIDR; metadata addresses never."""
    allowed_schemes: tuple[Literal["https", "http"], ...] = fixed(("https",))
    """What an endpoint's URL may start with."""
    allowed_ports: tuple[Annotated[int, Field(ge=1, le=65_535)], ...] = (443, 8443)
    """The ports that may be sent to; empty allows all."""
    signing_overlap_hours: int = fixed(24)
    """How long the signing secret's previous value signs as well, so that receivers can change over."""


def webhook_rules(webhook: Webhook, lease_margin: int) -> QueueRules:
    """One receive is one try, and `delays_seconds` are the waits between them."""
    visibility = visibility_of(webhook, webhook.batch_window_seconds)
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


RETRY_SETTING = RetrySetting(
    setting="delays_seconds",
    formula="one for each try",
    remedy=f"use {SQS_RECEIVES - 1} delays or fewer",
)


def webhook_faults(webhook: Webhook, lease_margin: int, keep: Retention) -> Iterator[str]:
    """Rules of the section `webhook`."""
    yield from queue_faults("webhook", webhook, webhook_rules(webhook, lease_margin), keep, RETRY_SETTING)
