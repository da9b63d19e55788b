"""The fax gateway: its provider, how long it waits for one fax, when it tries again, and the rules of its two
queues."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from mailroom_stacks.settings.queues import (
    RECEIVES_OVER,
    QueueRules,
    Retention,
    RetrySetting,
    Waits,
    longest_stay,
    queue_faults,
    worker_rules,
)
from mailroom_stacks.settings.sections import (
    Backoff,
    FailurePolicy,
    HttpProvider,
    QueueWorker,
    Redelivery,
    fixed,
)
from mailroom_stacks.settings.sentences import number

_NUMBER = r"^\+[1-9][0-9]{6,14}$"


class RetryMover(QueueWorker):
    """The queue on which faxes wait for their time, and the function that puts them back on their line."""


class Fax(Redelivery, FailurePolicy, Backoff, HttpProvider):
    """The fax queue, its sender, and the retries."""

    provider: Literal["signalwire", "telnyx"]
    """The company whose API sends the faxes."""
    senders: tuple[Annotated[str, Field(pattern=_NUMBER)], ...] = Field(min_length=1)
    """Our own numbers in E.164, such as +12025550123; the first is the default."""
    space: str | None = Field(default=None, pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
    """SignalWire's space: {space}.signalwire.com is called."""
    connection_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9-]{1,64}$")
    """Telnyx's id of the fax application."""
    longest_throttling_seconds: int = fixed(14_400)
    """The longest time the provider may refuse without a fax being dead-lettered for it."""
    timeout_seconds: int = fixed(900)
    """The longest that Lambda allows: a function that waits is cheaper than one that is started anew."""
    concurrent_calls: int = Field(default=2, ge=2, le=1000)
    """How many faxes may be under way at once; the provider's limit for the account."""
    calls_per_second: float = Field(default=1, ge=0.1, le=1000)
    """How many submits a second the provider takes, of all workers together."""
    submit_seconds: int = fixed(20)
    """The longest that one request to the provider may take."""
    record_seconds: int = fixed(10)
    """What is kept back, so that what became of a fax can still be recorded, or its record handed back."""
    on_unknown: Literal["resend", "hold"] = "hold"
    """Where the provider has several faxes after a crash that nobody accounts for: any may be this one."""
    poll_seconds: float = fixed(5)
    """The time between two looks at a fax that is under way."""
    ttl_minutes: int = fixed(5)
    """How long the provider may try by itself: short, for the retries here govern."""
    longest_fax_seconds: int = Field(default=7_200, ge=301, le=86_400)
    """Seconds from submit to end, the provider's own tries included: longer than `ttl_minutes`, for until
    then it may still start. A fax under way for longer is given up."""
    visibility_margin_seconds: int = fixed(60)
    """How long the queue's visibility outlives the lease: a crash holds a line for no longer than both."""
    max_attempts: int = Field(default=20, ge=1, le=100)
    """Attempts before a busy line or one that nobody answers is given up."""
    retry_delay_seconds: int = Field(default=600, ge=1, le=43_200)
    """The wait between two attempts."""
    media_seconds: int = fixed(3_600)
    """How long the provider may fetch a fax's PDF from the payload bucket. A URL ends with the credentials
    that signed it, and a function's are replaced every few hours: more could not be kept."""
    clock_skew_seconds: int = fixed(60)
    """How far the provider's clock may be behind ours when a lost submit is looked for. Generous: what the
    ledger knows of the line is left out anyway."""
    quality: Literal["standard", "fine", "superfine"] = fixed("fine")
    """The resolution that faxes are sent in."""
    retry: RetryMover = fixed(RetryMover())

    @property
    def url(self) -> str:
        """Where the provider's API is, without a slash at its end."""
        if self.base_url:
            return self.base_url
        return f"https://{self.space}.signalwire.com" if self.space else "https://api.telnyx.com"

    @property
    def pace(self) -> float:
        """The gap after each submit: so many workers, each leaving this long, keep to the rate."""
        return self.concurrent_calls / self.calls_per_second

    @property
    def watched_seconds(self) -> float:
        """For how much of its time-out one invocation can see a fax through."""
        return self.timeout_seconds - self.submit_seconds - self.record_seconds - self.poll_seconds


WAITING_RECEIVES = 2
"""A retry is received when its DelaySeconds end, then when its time has come; once more if clocks differ."""


@dataclass(frozen=True)
class FaxRules(QueueRules):
    """The fax queue's rules.

    lease        ├── function time-out ──┼─ margin ─┤            then the next worker may claim
    visibility   ├── lease ─────────────────────────┼─ margin ─┤ then the queue delivers again

    Not six time-outs, as AWS advises: a record that is not visible locks its line, and after a crash that
    would be for an hour and a half. The advice leaves room for throttled invocations: with one record each
    and bounded concurrency they are rare, and cost a receive of those that `crash_allowance` has.
    """

    to_finish: int
    """Receives that see a fax through once it was submitted, outages and crashes included."""

    @property
    def last_submit_receive(self) -> int:
        """The last receive that may submit: what is left then suffices until the fax has ended, so one that
        may be under way is never dead-lettered."""
        return self.max_receives - self.to_finish


def fax_rules(fax: Fax, lease_margin: int) -> FaxRules:
    """The rules of the fax queue."""
    waits = Waits.of(fax)
    lease = fax.timeout_seconds + lease_margin
    visibility = lease + fax.visibility_margin_seconds
    last_submit = waits.receives_to_cover(fax.longest_throttling_seconds)
    to_finish = receives_to_finish(fax, last_submit) + fax.crash_allowance
    receives = min(last_submit + to_finish, RECEIVES_OVER)
    return FaxRules(
        lease=lease,
        visibility=visibility,
        max_receives=receives,
        longest_stay=longest_stay(waits, receives, max(visibility, fax.misconfigured_seconds))
        + sum(fax.resend_delays_seconds),
        to_finish=to_finish,
    )


def receives_to_finish(fax: Fax, last_submit: int) -> int:
    """The fewest receives after number `last_submit` that last for as long as the longest fax.

    A receive that watches the fax lasts for almost its whole time-out. A receive in an outage of DynamoDB
    watches nothing, and lasts for its back-off. An outage may begin and end at any moment, so each receive
    counts for the shorter of the two. A receive that crashes lasts for longer than both.
    """
    waits, lasted, receives = Waits.of(fax), 0.0, 0
    while lasted < fax.longest_fax_seconds and receives < RECEIVES_OVER:
        receives += 1
        lasted += min(fax.watched_seconds, waits.shortest_after(last_submit + receives))
    return receives


def mover_rules(fax: Fax, lease_margin: int) -> QueueRules:
    """The rules of the retry queue: moving can fail like anything, and before that a record waits."""
    rules = worker_rules(fax.retry, lease_margin)
    waiting = fax.retry_delay_seconds + WAITING_RECEIVES * rules.visibility
    return replace(
        rules,
        max_receives=rules.max_receives + WAITING_RECEIVES,
        longest_stay=rules.longest_stay + waiting,
    )


_RETRY_SETTING = RetrySetting(
    setting="longest_fax_seconds",
    formula=(
        "as many as cover it when each wait is at its shortest, plus as many as cover longest_fax_seconds, "
        "plus crash_allowance"
    ),
)


def fax_faults(fax: Fax, lease_margin: int, keep: Retention) -> Iterator[str]:
    """Rules of the section `fax`."""
    yield from _provider(fax)
    yield from _times(fax)
    yield from queue_faults("fax", fax, fax_rules(fax, lease_margin), keep, _RETRY_SETTING)


def _provider(fax: Fax) -> Iterator[str]:
    """What one provider cannot do without, the other one has no use for."""
    if fax.provider == "signalwire":
        if (fax.space is None) == (fax.base_url is None):
            yield (
                "fax.space: signalwire needs exactly one of space and base_url; "
                "use the space of {space}.signalwire.com."
            )
        if fax.connection_id is not None:
            yield "fax.connection_id: is telnyx's, and provider is signalwire; remove it."
        return
    if fax.connection_id is None:
        yield "fax.connection_id: is missing; telnyx needs the id of the fax application."
    if fax.space is not None:
        yield "fax.space: is signalwire's, and provider is telnyx; remove it."


def _times(fax: Fax) -> Iterator[str]:
    needed = fax.pace + fax.submit_seconds + fax.record_seconds + fax.poll_seconds
    if needed >= fax.timeout_seconds:
        yield (
            f"fax.timeout_seconds: {fax.timeout_seconds} must be over {number(needed)} s: the gap "
            f"{number(fax.pace)} (concurrent_calls {fax.concurrent_calls} / calls_per_second "
            f"{number(fax.calls_per_second)}) + submit_seconds {fax.submit_seconds} + record_seconds "
            f"{fax.record_seconds} + poll_seconds {number(fax.poll_seconds)}; raise it or lower those."
        )
