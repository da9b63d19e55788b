"""What `plan` answers: how long, what bounds it, which setting would change that, what it costs."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from ops.plan.lanes import LEAST_WORKERS, Lane, Stages
from ops.plan.model import Assumed, Bound, Plan
from ops.prices import PROVIDERS, Use, dollars
from stacks.settings.campaigns import PUT_SECONDS
from stacks.settings.sentences import SettingsError

_MOST_WORKERS = 1000
_MOST_BATCH = 10
_WORTH = 0.95
"""A change that saves less than a twentieth is not worth a line."""


@dataclass(frozen=True)
class Change:
    """A setting by its full key, and how long all would take with another value, or what forbids it."""

    setting: str
    now: float
    then: float
    seconds: float | None
    forbidden: str = ""


@dataclass(frozen=True)
class Answer:
    """All of it."""

    stage: str
    lane: Lane
    plan: Plan
    changes: list[Change]
    dollars: dict[str, float]
    notes: list[str] = field(default_factory=list)
    warning: str = ""
    """Why so many do not fit; "": they do."""

    def told(self) -> "Told":
        """The same for programs."""
        plan = self.plan
        return Told(
            stage=self.stage,
            channel=self.lane.channel,
            lane=self.lane.name,
            messages=plan.messages,
            seconds=round(plan.seconds, 1),
            least_seconds=round(plan.least_seconds, 1),
            messages_per_second=round(plan.speed, 3),
            bound=plan.bound,
            bounds={name: round(speed, 3) for name, speed in plan.bounds.items()},
            assumed=plan.assumed,
            changes=self.changes,
            dollars={name: round(price, 4) for name, price in self.dollars.items()},
            provider_priced=self.lane.channel in PROVIDERS,
            notes=self.notes,
            warning=self.warning,
        )


class Told(Struct, frozen=True, kw_only=True):
    """A plan for programs: times in seconds, money in US dollars. `bounds`: messages a second that each
    bound alone would allow; `provider_priced`: whether what the provider takes is among the `dollars`."""

    stage: str
    channel: str
    lane: str
    messages: int
    seconds: float
    least_seconds: float
    messages_per_second: float
    bound: Bound
    bounds: dict[Bound, float]
    assumed: Assumed
    changes: list[Change]
    dollars: dict[str, float]
    provider_priced: bool
    notes: list[str]
    warning: str


def answer(stages: Stages, stage: str, lane: Lane, assumed: Assumed, messages: int) -> Answer:
    """The answer for one lane of a stage. Raises SettingsError where the stage's campaigns cannot be read."""
    plan = Plan(lane.senders, assumed, messages)
    return Answer(
        stage,
        lane,
        plan,
        list(_changes(stages, stage, lane, plan)),
        dollars(_use(lane, plan), messages),
        [*_notes(lane, plan), *_composing(stages, stage, lane, plan)],
        _warning(stage, lane, plan),
    )


def _use(lane: Lane, plan: Plan) -> Use:
    # Campaigns' messages have a topic, so that people's choices are read beside the suppression list.
    reads = {"mail": 1, "sms": 1, "push": 1}.get(lane.channel, 0) + (lane.name == "bulk")
    return Use(lane.channel, plan.invocation / lane.batch, lane.memory_mb, lane.batch, reads, lane.fifo)


def _changes(stages: Stages, stage: str, lane: Lane, plan: Plan) -> Iterator[Change]:
    if plan.bound == "rate" and lane.keys.rate and lane.allowed:
        yield _change(stages, stage, lane, plan, (lane.keys.rate, lane.allowed, lane.allowed * 2))
        return
    workers = min(plan.workers_for_rate() or lane.workers * 2, _MOST_WORKERS)
    if workers > lane.workers:
        yield _change(stages, stage, lane, plan, (lane.keys.workers, lane.workers, workers))
    if lane.keys.batch and lane.batch < _MOST_BATCH:
        change = _change(stages, stage, lane, plan, (lane.keys.batch, lane.batch, _MOST_BATCH))
        if change.seconds is None or change.seconds < _WORTH * plan.seconds:
            yield change


def _change(stages: Stages, stage: str, lane: Lane, plan: Plan, to: tuple[str, float, float]) -> Change:
    key, now, then = to
    setting = f"mailroom.{stage}.{key}"
    try:
        changed = stages.changed(stage, key, then).lane(stage, lane.channel, lane.name)
    except SettingsError as error:
        return Change(setting, now, then, None, str(error))
    seconds = Plan(changed.senders, plan.assumed, plan.messages).seconds
    return Change(setting, now, then, round(seconds, 1))


def _notes(lane: Lane, plan: Plan) -> Iterator[str]:
    if plan.bound == "rate" and plan.seconds > plan.least_seconds * 1.01:
        yield "It stays under the rate because each invocation waits for its pace anew."
    enough = max(plan.workers_for_rate() or 0, LEAST_WORKERS)
    if plan.bound == "rate" and enough < lane.workers:
        yield f"The rate can be kept with {enough} workers, which wait less: the senders then cost less."
    if lane.channel == "mail":
        yield "SES counts recipients, and has a quota of 24 hours, which is not known here."
    if lane.channel == "fax":
        yield "A number gets one fax at a time, so many to the same take longer; so do further attempts."


def _composing(stages: Stages, stage: str, lane: Lane, plan: Plan) -> Iterator[str]:
    if lane.name != "bulk":
        return
    workers = stages.composing(stage)
    put = workers / PUT_SECONDS
    if plan.speed <= put:
        yield f"Composing a campaign is no bound: {workers:,} functions put some {put:,.0f} a second."
    else:
        needed = math.ceil(plan.speed * PUT_SECONDS)
        yield (
            f"Composing a campaign may be the bound: {workers:,} functions put some {put:,.0f} a second, and "
            f"for this speed each enabled campaign needs a concurrency of {needed:,}."
        )
    yield "Composing itself is not in the cost: collect, compose, their queues and what they read."


def _warning(stage: str, lane: Lane, plan: Plan) -> str:
    if plan.seconds <= lane.room:
        return ""
    days = plan.seconds / 86_400
    return (
        f"Too many at once: the last would wait for {days:.1f} days in the queue {lane.queue}, which keeps "
        f"messages for {lane.kept_days} (mailroom.{stage}.{lane.keys.kept}), a part of that for retries; "
        f"past it SQS deletes them silently. At most {int(lane.room * plan.speed):,} fit."
    )
