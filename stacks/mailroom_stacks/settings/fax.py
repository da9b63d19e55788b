"""Settings of the fax gateway: provider, attempts and waits; and the rules of its two queues."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from mailroom.providers import provider
from mailroom_stacks.settings.queues import (
    CRASH_ALLOWANCE,
    RESEND_DELAYS,
    QueueRules,
    Waits,
    longest_stay,
    queue_rules,
)
from mailroom_stacks.settings.sections import FaxProvider, HttpProvider, OnUnknown, provider_fault
from mailroom_stacks.settings.sentences import number
from mailroom_stacks.settings.times import Times

_NUMBER = r"^\+[1-9][0-9]{6,14}$"


class Fax(HttpProvider):
    """Settings of the fax queue, its sender, and the retries."""

    provider: FaxProvider
    """Company whose API sends the faxes."""
    senders: tuple[Annotated[str, Field(pattern=_NUMBER)], ...] = Field(min_length=1)
    """Own numbers in E.164, such as +12025550123; the first is the default."""
    space: str | None = Field(default=None, pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
    """Name of the SignalWire space, as in {space}.signalwire.com."""
    connection_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9-]{1,64}$")
    """Id of the fax application at Telnyx."""
    concurrent_calls: int = Field(default=2, ge=2, le=1000)
    """Maximum number of faxes in transmission at a time, which is the provider's limit for the account."""
    calls_per_second: float = Field(default=1, ge=0.1, le=1000)
    """Submits per second that the provider allows, over all workers."""
    on_unknown: OnUnknown = "hold"
    """Action after a crash if the provider has several faxes that may be the message: resend or hold, as in
    `on_unknown` of a channel."""
    max_attempts: int = Field(default=20, ge=1, le=100)
    """Maximum number of attempts, for example if a line is busy."""
    retry_delay_seconds: int = Field(default=600, ge=1, le=43_200)
    """Seconds between two attempts."""

    @property
    def url(self) -> str:
        """URL of the provider's API, without a slash at its end."""
        return self.base_url or provider(self.provider).url.format(space=self.space)

    @property
    def pace(self) -> float:
        """Seconds for which each worker waits after a submit, so that all workers together do not exceed
        `calls_per_second`."""
        return self.concurrent_calls / self.calls_per_second


WAITING_RECEIVES = 2
"""Receives of a fax in the retry queue that do not move it yet: one when its DelaySeconds (at most 15
minutes) end before its time, and one if clocks differ."""


@dataclass(frozen=True)
class FaxRules(QueueRules):
    """Rules of the fax queue.

    lease        ├── function time-out ──┼─ margin ─┤            then the next worker may claim
        visibility   ├── lease ─────────────────────────┼─ margin ─┤ then the queue delivers again

    The visibility timeout is shorter than the six function time-outs that AWS recommends: a record that is
    not visible locks its line, and after a crash it would do so for an hour and a half. The recommendation
    leaves time for throttled invocations. With one record per invocation and limited concurrency they are
    rare, and each costs one of the receives in CRASH_ALLOWANCE.
    """

    last_submit_receive: int
    """Number of the last receive that may submit a fax. Later receives only ask for the result of a submitted
    fax. They are enough to outlast outages and crashes, so a fax in transmission never becomes a dead
    letter."""


def fax_rules(times: Times) -> FaxRules:
    """Return the rules of the fax queue."""
    waits = Waits.of(times)
    lease = times.fax_timeout + times.lease_margin
    visibility = lease + times.fax_visibility_margin
    last_submit = waits.receives_to_cover(times.provider_throttling)
    receives = last_submit + receives_to_finish(times, last_submit) + CRASH_ALLOWANCE
    return FaxRules(
        lease=lease,
        visibility=visibility,
        max_receives=receives,
        longest_stay=longest_stay(waits, receives, visibility) + sum(RESEND_DELAYS),
        last_submit_receive=last_submit,
    )


def receives_to_finish(times: Times, last_submit: int) -> int:
    """Return the lowest number of receives after number `last_submit` that together last as long as the
    longest fax.

    A receive that watches the fax lasts for almost the whole time-out. A receive during an outage of DynamoDB
    cannot watch the fax, and lasts only for its back-off. An outage may begin and end at any time, so each
    receive counts for the shorter of the two. A receive that crashes lasts for longer than both.
    """
    waits, lasted, receives = Waits.of(times), 0.0, 0
    while lasted < times.longest_fax:
        receives += 1
        lasted += min(times.fax_watched, waits.shortest_after(last_submit + receives))
    return receives


def mover_rules(fax: Fax, times: Times) -> QueueRules:
    """Return the rules of the retry queue. A record waits there first, and then moving it to the fax queue
    may fail."""
    rules = queue_rules(times, times.fax_mover_timeout)
    waiting = fax.retry_delay_seconds + WAITING_RECEIVES * rules.visibility
    return replace(
        rules,
        max_receives=rules.max_receives + WAITING_RECEIVES,
        longest_stay=rules.longest_stay + waiting,
    )


def fax_faults(fax: Fax, times: Times) -> Iterator[str]:
    """Yield violations of the rules of the section `fax`."""
    for setting in provider(fax.provider).one_of[:1]:
        if violation := provider_fault(f"fax.{setting}", fax, fax.provider):
            yield violation
    if fax.pace >= times.fax_watched:
        yield (
            f"fax.concurrent_calls: {fax.concurrent_calls} / calls_per_second {number(fax.calls_per_second)} "
            f"= {number(fax.pace)} s between a worker's submits must be under {number(times.fax_watched)} s, "
            "the time for which a function can watch a fax; lower it, or raise calls_per_second."
        )
