"""How long a number of messages takes, by three rules: the rate is the least of the pace, of workers / time
and of quotas; the time is messages / rate; what it costs is counts x prices.

An invocation takes as long as its messages one after another, and some time passes until the next one: the
formula of Hashnode's "How We Send Mass Personalised Emails using AWS Serverless Technologies" (2022). All
times are in seconds. Every message goes well at its first attempt, and all workers run from the start.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mailroom_ops.estimates.lanes import Assumed, ConfiguredLane, Stages
from mailroom_ops.estimates.prices import (
    DISPATCHED,
    HAND_OVER_WRITES,
    HOLD_WRITES,
    LAMBDA_REQUEST,
    QUEUED,
    READ_UNIT,
    RELEASE_MB,
    RELEASE_SECONDS,
    SQS_FIFO_REQUEST,
    SQS_REQUEST,
    UNREAD,
    WRITE_UNIT,
    lambda_time,
    writes_of_event,
)
from mailroom_ops.estimates.quotas import NEW_TABLE_WRITES, TABLE_WRITES
from mailroom_stacks.settings.campaigns import PUT_SECONDS

DISPATCH_SECONDS = 0.002
FEEDBACK_SECONDS = 0.02
"""Seconds of a function for each record of a stream, and for each event; assumed, not measured on AWS."""
WORKING, WAITING = "sender's time", "sender's wait for its pace"
"""Parts of a cost: the sender's function while it works, and while it waits so that the rate is kept."""
_EXACT = 1e-9
"""What a floating-point division may be off by."""


@dataclass(frozen=True)
class Sending:
    """What one message takes of a lane's senders."""

    lane: ConfiguredLane
    assumed: Assumed

    @property
    def latency(self) -> float:
        """A message's time in its sender: what it computes takes longer by the sender's part of a vCPU, which
        the messages at a time share."""
        lane, latency = self.lane, self.assumed.latency
        computing = min(latency, self.assumed.computing)
        slowed = computing / lane.vcpu
        return max(latency - computing + slowed, lane.at_once * slowed)

    @property
    def working(self) -> float:
        """How long a sender works for a message."""
        return self.lane.rounds * self.latency / self.lane.batch

    @property
    def waiting(self) -> float:
        """How long a sender waits for its pace, a message."""
        return max(0.0, self.lane.pace - self.working)

    @property
    def a_worker(self) -> float:
        """Messages a second of one worker that waits for no pace."""
        return 1 / (self.working + self.assumed.between / self.lane.batch)

    def workers_for_rate(self) -> int | None:
        """The fewest workers that are no bound any more; None where there is no rate to reach."""
        rate = self.lane.rate
        return math.ceil(rate / self.a_worker - _EXACT) if rate else None

    def dollars(self, messages: int) -> dict[str, float]:
        """What so many cost, by the part; who sends them is the last where its price is known.

        Left out: what providers tell afterwards, logs, alarms, payloads, and items over 1 KB.
        """
        lane, estimate = self.lane, self.lane.estimate
        # Campaigns' messages have a topic, so that people's choices are read beside the suppression list.
        reads = int(estimate.suppressible) + (lane.name == "bulk")
        request = SQS_FIFO_REQUEST if lane.fifo else SQS_REQUEST
        parts = {
            "mailbox and ledger writes": (1 + estimate.ledger_units) * WRITE_UNIT,
            "reads of who may get nothing": reads * UNREAD * READ_UNIT,
            "queue requests": (1 / QUEUED + 2 / lane.batch) * request,
            "invocations": (1 / DISPATCHED + 1 / lane.batch) * LAMBDA_REQUEST,
            WORKING: lambda_time(self.working, lane.memory_mb),
            WAITING: lambda_time(self.waiting, lane.memory_mb),
        }
        if estimate.provider:
            parts[estimate.provider] = estimate.price
        return {name: price * messages for name, price in parts.items() if price}


def wait_price(lane: ConfiguredLane, content_kb: int) -> float:
    """Return the US dollars that one wait costs beside the sending.

    `content_kb` is the size in KB, after compression, of the content that a message waits with: a worker
    holds such a message, and the message goes through its queue a second time. 0: a message waits for its
    `send_at`, and `release` reads its item back from the mailbox.
    """
    writes = HOLD_WRITES + HAND_OVER_WRITES + 2 * content_kb
    own = writes * WRITE_UNIT + max(1, math.ceil(content_kb / 4)) * READ_UNIT
    released = own + lambda_time(RELEASE_SECONDS, RELEASE_MB)
    if not content_kb:
        return released
    request = SQS_FIFO_REQUEST if lane.fifo else SQS_REQUEST
    return released + (1 / QUEUED + 2 / lane.batch) * request + LAMBDA_REQUEST / lane.batch


@dataclass(frozen=True)
class Bound:
    """What lets at most `speed` messages a second pass. `limit` is the setting below the stage, or else the
    quota; `how` the formula, for people."""

    name: str
    words: str
    speed: float
    how: str
    limit: str
    is_setting: bool = True

    def limit_in(self, stage: str) -> str:
        """The full key of the setting, or the quota."""
        return f"mailroom.{stage}.{self.limit}" if self.is_setting else self.limit


@dataclass(frozen=True)
class Forecast:
    """What becomes of `messages` of one lane."""

    stage: str
    sending: Sending
    messages: int
    warm: int
    bounds: tuple[Bound, ...]

    @classmethod
    def of(
        cls, stages: Stages, stage: str, sending: Sending, messages: int, warm: int = NEW_TABLE_WRITES.value
    ) -> "Forecast":
        """`warm`: write units a second that the tables of mailbox and ledger take each. Raises SettingsError
        where the stage's campaigns cannot be read."""
        return cls(stage, sending, messages, warm, tuple(_bounds(stages, stage, sending, warm)))

    def again(self, stages: Stages) -> "Forecast":
        """The same with other settings. Raises SettingsError where synth refuses them."""
        lane = stages.lane(self.stage, self.sending.lane.channel, self.sending.lane.name)
        return Forecast.of(stages, self.stage, Sending(lane, self.sending.assumed), self.messages, self.warm)

    @property
    def ranked(self) -> list[Bound]:
        """The lowest bound first."""
        return sorted(self.bounds, key=lambda each: each.speed)

    @property
    def speed(self) -> float:
        """Messages a second."""
        return self.ranked[0].speed

    @property
    def seconds(self) -> float:
        """From the first put until the provider has accepted the last message."""
        return max(self.sending.latency, self.messages / self.speed)


def _bounds(stages: Stages, stage: str, sending: Sending, warm: int) -> Iterator[Bound]:
    settings, lane = stages.settings(stage), sending.lane
    estimate, bulk = lane.estimate, lane.name == "bulk"
    if bulk and (composing := stages.composing(stage)):
        speed, how = composing / PUT_SECONDS, f"{composing} / {PUT_SECONDS:g} s"
        limit = "the smallest concurrency of the enabled campaigns"
        yield Bound("compose", "composing", speed, how, limit, is_setting=False)
    batch = f"({lane.rounds} x {sending.latency:.3g} s + {sending.assumed.between:g} s)"
    how = f"{lane.workers} x {lane.batch} / {batch}"
    yield Bound("workers", "the number of workers", lane.workers * sending.a_worker, how, lane.keys.workers)
    if lane.rate and lane.allowed:
        how = f"{lane.allowed:g}" + (f" x {lane.share:g}" if lane.share != 1 else "")
        yield Bound("rate", "the rate", lane.rate, how, lane.keys.rate or "")
    table = TABLE_WRITES if warm >= TABLE_WRITES.value else NEW_TABLE_WRITES
    told = estimate.events * writes_of_event(lane.channel, bulk=bulk)
    for name, units in (("mailbox", 1.0), ("ledger", estimate.ledger_units + told)):
        how = f"{warm:,} / {units:.3g}"
        yield Bound(name, f"the {name}'s writes", warm / units, how, table.name, is_setting=False)
    quota, each = settings.monitoring.concurrency_quota, sending.working + sending.waiting + DISPATCH_SECONDS
    how, limit = f"{quota:,} / {each:.3g} s", "monitoring.concurrency_quota"
    yield Bound("functions", "the functions that the account runs at once", quota / each, how, limit)
