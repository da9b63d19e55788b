"""What `plan` answers: how long, what bounds it, which setting would change that, what it costs."""

import math
from collections.abc import Iterator

from msgspec import Struct

from ops.estimates.lanes import (
    LEAST_WORKERS,
    MOST_WORKERS,
    Assumed,
    Bound,
    ConfiguredLane,
    SendingPlan,
    Stages,
    use_of,
)
from ops.estimates.prices import dollars, estimate_of, lambda_time
from stacks.settings.campaigns import PUT_SECONDS
from stacks.settings.sentences import SettingsError

MILLION = 1_000_000
_MOST_BATCH = 10
_WORTH = 0.95
"""A change that saves less than a twentieth is not worth a line."""


class SettingChange(Struct, frozen=True):
    """A setting by its full key, and how long all would take with another value, or what forbids it."""

    setting: str
    now: float
    then: float
    seconds: float | None
    forbidden: str = ""


class PaceCost(Struct, frozen=True):
    """What functions cost while they wait for their pace, and while they work, in US dollars a million
    messages. `setting` is the key of a setting that would make the wait cheaper, with its value now and then,
    and what the wait costs then; "": none would."""

    waiting: float
    working: float
    setting: str
    now: float
    then: float
    waiting_then: float


class PlanOutput(Struct, frozen=True, kw_only=True):
    """A plan for programs: times in seconds, money in US dollars. `bounds`: messages a second that each
    bound would allow without the other; `pace`: what the wait for the pace costs (null: it costs less than
    the work, and no setting makes it cheaper); `provider_priced`: whether `dollars` include the provider's
    price; `warning`: why so many do not fit; "": they do."""

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
    changes: list[SettingChange]
    dollars: dict[str, float]
    pace: PaceCost | None
    provider_priced: bool
    notes: list[str]
    warning: str


def plan_output(stages: Stages, stage: str, lane: ConfiguredLane, plan: SendingPlan) -> PlanOutput:
    """The answer for one lane of a stage. Raises SettingsError where the stage's campaigns cannot be read."""
    return PlanOutput(
        stage=stage,
        channel=lane.channel,
        lane=lane.name,
        messages=plan.messages,
        seconds=round(plan.seconds, 1),
        least_seconds=round(plan.least_seconds, 1),
        messages_per_second=round(plan.speed, 3),
        bound=plan.bound,
        bounds={name: round(speed, 3) for name, speed in plan.bounds.items()},
        assumed=plan.assumed,
        changes=list(_changes(stages, stage, lane, plan)),
        dollars={name: round(price, 4) for name, price in dollars(use_of(lane, plan), plan.messages).items()},
        pace=_pace(stages, stage, lane, plan),
        provider_priced=bool(estimate_of(lane.channel).provider),
        notes=[*_notes(lane, plan), *_composing(stages, stage, lane, plan)],
        warning=_warning(stage, lane, plan),
    )


def _changes(stages: Stages, stage: str, lane: ConfiguredLane, plan: SendingPlan) -> Iterator[SettingChange]:
    if plan.bound == "rate" and lane.keys.rate and lane.allowed:
        yield _change(stages, stage, lane, plan, (lane.keys.rate, lane.allowed, lane.allowed * 2))
        return
    workers = min(plan.workers_for_rate() or lane.workers * 2, MOST_WORKERS)
    if workers > lane.workers:
        yield _change(stages, stage, lane, plan, (lane.keys.workers, lane.workers, workers))
    for key, now, then in (
        (lane.keys.at_once, lane.at_once, lane.batch),
        (lane.keys.batch, lane.batch, _MOST_BATCH),
    ):
        if key and now < then:
            change = _change(stages, stage, lane, plan, (key, now, then))
            if change.seconds is None or change.seconds < _WORTH * plan.seconds:
                yield change


def _change(
    stages: Stages, stage: str, lane: ConfiguredLane, plan: SendingPlan, to: tuple[str, float, float]
) -> SettingChange:
    key, now, then = to
    setting = f"mailroom.{stage}.{key}"
    try:
        changed = stages.changed(stage, key, then).lane(stage, lane.channel, lane.name)
    except SettingsError as error:
        return SettingChange(setting, now, then, None, str(error))
    seconds = SendingPlan(changed.senders, plan.assumed, plan.messages).seconds
    return SettingChange(setting, now, then, round(seconds, 1))


def _pace(stages: Stages, stage: str, lane: ConfiguredLane, plan: SendingPlan) -> PaceCost | None:
    def cost(seconds: float) -> float:
        return lambda_time(seconds, lane.memory_mb) * MILLION

    waiting, working = cost(plan.waiting), cost(plan.working)
    key, now, then = _shorter_wait(stages, stage, lane, plan)
    if key:
        changed = stages.changed(stage, key, then).lane(stage, lane.channel, lane.name)
        shorter = cost(SendingPlan(changed.senders, plan.assumed, plan.messages).waiting)
        return PaceCost(
            round(waiting, 4), round(working, 4), f"mailroom.{stage}.{key}", now, then, round(shorter, 4)
        )
    return PaceCost(round(waiting, 4), round(working, 4), "", 0, 0, 0) if waiting > working else None


def _shorter_wait(
    stages: Stages, stage: str, lane: ConfiguredLane, plan: SendingPlan
) -> tuple[str, float, float]:
    """A setting that lets each worker wait less at the same rate of the channel, its value and a better one;
    "" is none: fewer workers where that many are not needed, else what is left of the rate."""
    enough = max(plan.workers_for_rate() or LEAST_WORKERS, LEAST_WORKERS)
    if plan.bound == "rate" and enough < lane.workers:
        return lane.keys.workers, lane.workers, enough
    others = sum(
        each.share for each in stages.lanes(stage) if each.channel == lane.channel and each.name != lane.name
    )
    left = round(1 - others, 2)
    if plan.bound == "rate" and lane.keys.share and left > lane.share:
        return lane.keys.share, lane.share, left
    return "", 0, 0


def _notes(lane: ConfiguredLane, plan: SendingPlan) -> Iterator[str]:
    if plan.bound == "rate" and plan.seconds > plan.least_seconds * 1.01:
        yield "It stays under the rate because time passes between two invocations."
    if note := estimate_of(lane.channel).note:
        yield note


def _composing(stages: Stages, stage: str, lane: ConfiguredLane, plan: SendingPlan) -> Iterator[str]:
    if lane.name != "bulk":
        return
    workers = stages.composing(stage)
    put = workers / PUT_SECONDS
    if plan.speed <= put:
        yield f"Composing a campaign does not bound this: {workers:,} functions put some {put:,.0f} a second."
    else:
        needed = math.ceil(plan.speed * PUT_SECONDS)
        yield (
            f"Composing a campaign may be the bound: {workers:,} functions put some {put:,.0f} a second, and "
            f"for this speed each enabled campaign needs a concurrency of {needed:,}."
        )
    yield "Composing itself is not in the cost: collect, compose, their queues and what they read."


def _warning(stage: str, lane: ConfiguredLane, plan: SendingPlan) -> str:
    if plan.seconds <= lane.room:
        return ""
    days = plan.seconds / 86_400
    return (
        f"Too many at once: the last message would wait for {days:.1f} days in the queue {lane.queue}, which "
        f"keeps messages for {lane.kept_days} (mailroom.{stage}.{lane.keys.kept}), a part of it for retries; "
        f"after that SQS deletes them silently. At most {int(lane.room * plan.speed):,} fit."
    )
