"""What a message passes on its way, station by station: how many a second each lets through, and the setting
or quota that decides this. `mailroom plan` and docs/limits.md reckon with the same stations.

All times are in seconds. Every message goes well at its first attempt.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from ops.estimates.lanes import Assumed, Bound, ConfiguredLane, Ramp, SendingPlan, Stages
from ops.estimates.prices import BETWEEN, estimate_of, writes_of_event
from ops.estimates.quotas import NEW_TABLE_WRITES, PARTITION_WRITES, POLLERS_AT_START, TABLE_WRITES
from stacks.settings.campaigns import PUT_SECONDS
from stacks.settings.queues import Stream

DISPATCH_SECONDS = 0.002
FEEDBACK_SECONDS = 0.02
"""Seconds of a function for each record of a stream, and for each event; assumed, not measured on AWS."""


_WORDS = {
    "compose": "composing",
    "mailbox": "the mailbox's writes",
    "dispatch": "the readers of the mailbox's stream",
    "workers": "the number of workers",
    "rate": "the rate",
    "ledger": "the ledger's writes",
    "functions": "the functions that the account runs at once",
    "feedback": "the readers of the provider's events",
    "outcomes": "the readers of the ledger's stream",
    "webhook": "the senders of callbacks",
}


@dataclass(frozen=True)
class Load:
    """What is put: so many messages, `rate` a second or as fast as it goes (None). The tables of mailbox and
    ledger take `warm` write units a second each. `callbacks`: each message has a `callback_url`."""

    messages: int
    rate: float | None = None
    warm: int = NEW_TABLE_WRITES.value
    callbacks: bool = False


@dataclass(frozen=True)
class Station(ABC):
    """Where messages pass. `limit` is the setting, below the stage, or else the quota that decides how many
    do; `reports`: what passes here tells of messages that have been sent, and holds up none of them."""

    name: str
    limit: str
    is_setting: bool
    reports: bool = False

    @property
    @abstractmethod
    def speed(self) -> float:
        """The most messages a second."""

    @property
    @abstractmethod
    def how(self) -> str:
        """The formula of the speed, for people."""

    @property
    def words(self) -> str:
        """The station, for people."""
        return _WORDS[self.name]

    def limit_in(self, stage: str) -> str:
        """The full key of the setting, or the quota."""
        return f"mailroom.{stage}.{self.limit}" if self.is_setting else self.limit


@dataclass(frozen=True, kw_only=True)
class Shared(Station):
    """What several parts share: the write units a second of a table, or all functions that the account runs
    at once. There are `total` of them."""

    total: float
    parts: tuple["Part", ...]

    @property
    def speed(self) -> float:
        # Infinite where the parts together cannot take all of it.
        taken, growing = 0.0, sum(part.each for part in self.parts)
        for part in sorted(self.parts, key=lambda each: each.most):
            reached = (self.total - taken) / growing
            if reached <= part.most:
                return reached
            taken, growing = taken + part.each * part.most, growing - part.each
        return math.inf

    def takes(self, part: str) -> float:
        """What a part takes for a message; nothing, if there is no such part."""
        return sum(each.each for each in self.parts if each.name == part)

    @property
    def how(self) -> str:
        return f"{self.total:,.0f} / {self.total / self.speed:.3g}"


class Part(NamedTuple):
    """What takes `each` of what is shared for a message, and passes at most `most` messages a second."""

    name: str
    each: float
    most: float = math.inf


@dataclass(frozen=True, kw_only=True)
class Pool(Station):
    """So many workers at once of a function. Each takes `batch` records, for `seconds` a record, and its next
    batch after `between`; a message has `records` of them. Of a queue Lambda begins to read with few."""

    workers: int
    seconds: float
    batch: int
    between: float = 0
    records: float = 1
    of_queue: bool = False

    @property
    def at_start(self) -> int:
        """How many workers Lambda begins with, where there are more."""
        return POLLERS_AT_START.value if self.of_queue else self.workers

    @property
    def ramp(self) -> Ramp:
        """How the speed grows while Lambda adds workers."""
        return Ramp.of(self.speed, self.workers, self.at_start)

    @property
    def speed(self) -> float:
        return self.workers * self.batch / (self.batch * self.seconds + self.between) / self.records

    @property
    def how(self) -> str:
        return f"{self.workers:,} / {self.workers / self.speed:.3g} s"


@dataclass(frozen=True, kw_only=True)
class Senders(Station):
    """The senders of the lanes that are used, as far as one of their own two bounds goes."""

    a_second: float
    formula: str

    @property
    def speed(self) -> float:
        return self.a_second

    @property
    def how(self) -> str:
        return self.formula


@dataclass(frozen=True)
class Forecast:
    """What becomes of a load at its stations. `plans` are those of its lanes, with their part of the
    messages."""

    stage: str
    load: Load
    lanes: tuple[ConfiguredLane, ...]
    plans: tuple[SendingPlan, ...]
    stations: tuple[Station, ...]

    @classmethod
    def of(
        cls, stages: Stages, stage: str, lanes: Sequence[ConfiguredLane], load: Load, assumed: Assumed
    ) -> "Forecast":
        """The forecast for lanes of one channel that get a load, each in proportion to what it sends;
        `assumed` is of the channel. Raises SettingsError where the stage's campaigns cannot be read."""
        alone = [SendingPlan(lane.senders, assumed, load.messages) for lane in lanes]
        plans, left = [], load.messages
        for at, plan in enumerate(alone):
            part = round(left * plan.speed / sum(each.speed for each in alone[at:]))
            plans.append(replace(plan, messages=part))
            left -= part
        found = _stations(stages, stage, lanes, plans, load)
        there = tuple(each for each in found if each.speed < math.inf)
        return cls(stage, load, tuple(lanes), tuple(plans), there)

    def again(self, stages: Stages) -> "Forecast":
        """The forecast of this load with other settings. Raises SettingsError where synth refuses them."""
        lanes = [stages.lane(self.stage, each.channel, each.name) for each in self.lanes]
        return Forecast.of(stages, self.stage, lanes, self.load, self.plans[0].assumed)

    @cached_property
    def ranked(self) -> list[Station]:
        """What holds up messages, the slowest first."""
        return sorted((each for each in self.stations if not each.reports), key=lambda each: each.speed)

    @property
    def bound(self) -> Station:
        return self.ranked[0]

    @property
    def following(self) -> Station:
        """The next bottleneck, where somebody lifts the first."""
        return self.ranked[1]

    @property
    def keeps_up(self) -> bool:
        """Whether messages that are put at a rate are sent at that rate."""
        return self.load.rate is not None and self.load.rate <= self.speed

    @property
    def longest_wait(self) -> float:
        """How long the last message waits for its turn; of messages that are put at once, all the time."""
        return self.seconds - (self.load.messages / self.load.rate if self.load.rate else 0)

    @property
    def slow_report(self) -> Station | None:
        """The slowest of the stations that tell of what was sent, if it is slower than the sending."""
        sent = min(self.speed, self.load.rate or math.inf)
        slower = (each for each in self.stations if each.reports and each.speed < sent)
        return min(slower, key=lambda each: each.speed, default=None)

    @property
    def speed(self) -> float:
        """The most messages a second that the stage sends, once as many workers run as will."""
        return min(sum(plan.speed for plan in self.plans), self.bound.speed)

    @property
    def sending(self) -> float:
        """Messages a second that are sent, once as many workers run as will."""
        return min(self.speed, self.arriving)

    @property
    def arriving(self) -> float:
        """Messages a second that reach the queues."""
        before = (each.speed for each in self.stations if each.name in BEFORE)
        return min(self.load.rate or math.inf, *before)

    @property
    def seconds(self) -> float:
        """From the first put until the provider has accepted the last message."""
        return max(self.load.messages / self.arriving, *(self._sending(plan) for plan in self.plans))

    @property
    def reported(self) -> float:
        """Until the ledger also knows what became of the last message."""
        pools = (each for each in self.stations if each.reports and isinstance(each, Pool))
        return max([self.seconds, *(pool.ramp.time_of(self.load.messages) for pool in pools)])

    @property
    def deepest(self) -> float:
        """The most messages that wait in the lanes' queues at once."""
        return max(0.0, sum(self._waiting(plan) for plan in self.plans))

    def _share(self, plan: SendingPlan) -> float:
        return plan.messages / self.load.messages

    def _shared(self, plan: SendingPlan) -> float:
        """The most of a lane that the stations let pass which all lanes share."""
        shared = (each.speed for each in self.ranked if each.name not in (*BEFORE, *SENDERS))
        return min(shared, default=math.inf) * self._share(plan)

    def _sending(self, plan: SendingPlan) -> float:
        return max(plan.latency, plan.ramp.under(self._shared(plan)).time_of(plan.messages))

    def _waiting(self, plan: SendingPlan) -> float:
        arriving, ramp = self.arriving * self._share(plan), plan.ramp.under(self._shared(plan))
        # The queue grows until as many are sent as arrive, or none arrive any more.
        grown = min(plan.messages / arriving, ramp.time_at(arriving))
        return arriving * grown - ramp.sent_by(grown)


BEFORE = ("compose", "mailbox", "dispatch")
"""Stations that messages pass before their queue."""
SENDERS: tuple[Bound, ...] = ("workers", "rate")
"""What bounds a lane by itself."""


def _stations(
    stages: Stages, stage: str, lanes: Sequence[ConfiguredLane], plans: Sequence[SendingPlan], load: Load
) -> Iterator[Station]:
    settings, estimate = stages.settings(stage), estimate_of(lanes[0].channel)
    bulk = any(lane.name == "bulk" for lane in lanes)
    shards = math.ceil(load.warm / PARTITION_WRITES.value)
    dispatch = _stream("dispatch", settings.dispatch, shards)
    reports = [*_reports(stages, stage, lanes[0].channel, load, shards)]
    units = TABLE_WRITES.name if load.warm >= TABLE_WRITES.value else NEW_TABLE_WRITES.name
    if bulk and (composing := stages.composing(stage)):
        limit = "the smallest concurrency of the enabled campaigns"
        yield Pool("compose", limit, False, workers=composing, seconds=PUT_SECONDS, batch=1)
    yield Shared("mailbox", units, False, total=load.warm, parts=(Part("put", 1),))
    yield dispatch
    yield from _senders(lanes, plans)
    writes = {"feedback": writes_of_event(lanes[0].channel, bulk=bulk), "webhook": 1.0}
    told = (
        Part(pool.name, writes[pool.name] * pool.records, pool.speed)
        for pool in reports
        if pool.name in writes
    )
    sent = Part("send", estimate.ledger_units())
    yield Shared("ledger", units, False, total=load.warm, parts=(sent, *told))
    most = sum(plan.speed for plan in plans)
    senders = (
        Part("send", (plan.working + plan.waiting) * plan.messages / load.messages, most) for plan in plans
    )
    functions = (Part(pool.name, pool.workers / pool.speed, pool.speed) for pool in (dispatch, *reports))
    quota = settings.monitoring.concurrency_quota
    yield Shared("functions", "monitoring.concurrency_quota", True, total=quota, parts=(*senders, *functions))
    yield from reports


def _stream(name: str, stream: Stream, shards: int, records: float = 1, *, reports: bool = False) -> Pool:
    return Pool(
        name,
        f"{name}.parallelization",
        True,
        reports,
        workers=shards * stream.parallelization,
        seconds=DISPATCH_SECONDS,
        batch=stream.batch_size,
        records=records,
    )


def _senders(lanes: Sequence[ConfiguredLane], plans: Sequence[SendingPlan]) -> Iterator[Senders]:
    for name in SENDERS:
        bounds = [plan.bounds.get(name) for plan in plans]
        speeds = [each for each in bounds if each is not None]
        if len(speeds) == len(plans):
            limit = lanes[0].keys.workers if name == "workers" else lanes[0].keys.rate or ""
            how = " + ".join(_how(name, lane, plan) for lane, plan in zip(lanes, plans, strict=True))
            yield Senders(name, limit, True, a_second=sum(speeds), formula=how)


def _how(name: Bound, lane: ConfiguredLane, plan: SendingPlan) -> str:
    if name == "rate":
        return f"{lane.allowed:g}" + (f" x {lane.share:g}" if lane.share != 1 else "")
    batch = f"({plan.senders.rounds} x {plan.latency:.3g} s + {plan.assumed.between:g} s)"
    return f"{lane.workers} x {lane.batch} / {batch}"


def _reports(stages: Stages, stage: str, channel: str, load: Load, shards: int) -> Iterator[Pool]:
    """What tells of messages that were sent."""
    settings, estimate = stages.settings(stage), estimate_of(channel)
    if estimate.events:
        feedback = settings.feedback
        yield Pool(
            "feedback",
            "feedback.maximum_concurrency",
            True,
            True,
            workers=feedback.maximum_concurrency,
            seconds=FEEDBACK_SECONDS,
            batch=feedback.batch_size,
            between=BETWEEN,
            of_queue=True,
            records=estimate.events,
        )
    if load.callbacks and channel != "webhook":
        yield _stream("outcomes", settings.outcomes, shards, estimate.callbacks, reports=True)
        lane = stages.lane(stage, "webhook", "normal")
        yield Pool(
            "webhook",
            lane.keys.workers,
            True,
            True,
            workers=lane.workers,
            seconds=SendingPlan(lane.senders, Assumed.of("webhook"), 1).working,
            batch=lane.batch,
            between=BETWEEN,
            of_queue=True,
            records=estimate.callbacks,
        )
