"""What `plan` answers: how long, what bounds it, which setting would change that, what it costs."""

from collections.abc import Iterator

from msgspec import Struct

from ops.estimates.lanes import Assumed, ConfiguredLane, SendingPlan, Stages, dollars
from ops.estimates.prices import estimate_of, lambda_time
from ops.estimates.quotas import LEAST_WORKERS, MOST_WORKERS, POLLERS_A_MINUTE, POLLERS_AT_START
from ops.estimates.stations import Forecast
from ops.times import exactly, speed_of
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
    """A plan for programs: times in seconds, money in US dollars. `seconds`: until the provider has accepted
    all; `reported_seconds`: until the ledger also knows what became of them. `bounds`: messages a second that
    each station would allow without the others; `limits`: the setting or quota that it follows from. `bound`
    and `next_bound`: the slowest station that messages have to pass, and the slowest but that; `keeps_up`:
    whether messages that are put at a rate are sent at that rate; `deepest_queue`: the most messages that
    wait in the queue. `pace`: what the wait for the pace costs (null: it costs less than the work, and no
    setting makes it cheaper); `provider_priced`: whether `dollars` include the provider's price; `warning`:
    why so many do not fit; "": they do."""

    stage: str
    channel: str
    lane: str
    messages: int
    seconds: float
    reported_seconds: float
    least_seconds: float
    messages_per_second: float
    keeps_up: bool
    bound: str
    next_bound: str
    bounds: dict[str, float]
    limits: dict[str, str]
    deepest_queue: int
    assumed: Assumed
    changes: list[SettingChange]
    dollars: dict[str, float]
    pace: PaceCost | None
    provider_priced: bool
    notes: list[str]
    warning: str


def plan_output(stages: Stages, forecast: Forecast) -> PlanOutput:
    ((lane,), (plan,), stage) = forecast.lanes, forecast.plans, forecast.stage
    return PlanOutput(
        stage=stage,
        channel=lane.channel,
        lane=lane.name,
        messages=plan.messages,
        seconds=round(forecast.seconds, 1),
        reported_seconds=round(forecast.reported, 1),
        least_seconds=round(plan.messages / forecast.bound.speed, 1),
        messages_per_second=round(forecast.speed, 3),
        keeps_up=forecast.keeps_up,
        bound=forecast.bound.name,
        next_bound=forecast.following.name,
        bounds={each.name: round(each.speed, 3) for each in forecast.stations},
        limits={each.name: each.limit_in(stage) for each in forecast.stations},
        deepest_queue=round(forecast.deepest),
        assumed=plan.assumed,
        changes=list(_changes(stages, forecast, lane, plan)),
        dollars={name: round(price, 4) for name, price in dollars(lane, plan).items()},
        pace=_pace(stages, stage, lane, plan),
        provider_priced=bool(estimate_of(lane.channel).provider),
        notes=[*_notes(forecast, lane, plan)],
        warning=_warning(forecast, lane),
    )


def _changes(
    stages: Stages, forecast: Forecast, lane: ConfiguredLane, plan: SendingPlan
) -> Iterator[SettingChange]:
    if forecast.keeps_up:
        return
    bound = forecast.bound.name
    if bound == "rate" and lane.keys.rate and lane.allowed:
        yield _change(stages, forecast, lane.keys.rate, lane.allowed, lane.allowed * 2)
    elif bound == "workers":
        yield from _workers_changes(stages, forecast, lane, plan)


def _workers_changes(
    stages: Stages, forecast: Forecast, lane: ConfiguredLane, plan: SendingPlan
) -> Iterator[SettingChange]:
    workers = min(plan.workers_for_rate() or lane.workers * 2, MOST_WORKERS)
    if workers > lane.workers:
        yield _change(stages, forecast, lane.keys.workers, lane.workers, workers)
    for key, now, then in (
        (lane.keys.at_once, lane.at_once, lane.batch),
        (lane.keys.batch, lane.batch, _MOST_BATCH),
    ):
        if key and now < then:
            change = _change(stages, forecast, key, now, then)
            if change.seconds is None or change.seconds < _WORTH * forecast.seconds:
                yield change


def _change(stages: Stages, forecast: Forecast, key: str, now: float, then: float) -> SettingChange:
    setting = f"mailroom.{forecast.stage}.{key}"
    try:
        changed = forecast.again(stages.changed(forecast.stage, key, then))
    except SettingsError as error:
        return SettingChange(setting, now, then, None, str(error))
    return SettingChange(setting, now, then, round(changed.seconds, 1))


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


def _notes(forecast: Forecast, lane: ConfiguredLane, plan: SendingPlan) -> Iterator[str]:
    bound = forecast.bound
    if bound.name == "rate" and forecast.speed < 0.99 * bound.speed and not forecast.keeps_up:
        yield "It stays under the rate because time passes between two invocations."
    if forecast.seconds > 1.01 * plan.messages / forecast.sending + plan.latency:
        yield (
            f"Lambda starts with {POLLERS_AT_START.value} workers and adds {POLLERS_A_MINUTE.value} a "
            f"minute: all {plan.senders.workers:,} work after {exactly(plan.ramp.time_at(plan.speed))}."
        )
    if slow := forecast.slow_report:
        yield (
            f"What became of them is known later, after {exactly(forecast.reported)}: {slow.words} take "
            f"{speed_of(slow.speed)} messages a second ({slow.limit_in(forecast.stage)})."
        )
    if note := estimate_of(lane.channel).note:
        yield note
    if lane.name == "bulk":
        yield "Composing itself is not in the cost: collect, compose, their queues and what they read."


def _warning(forecast: Forecast, lane: ConfiguredLane) -> str:
    if forecast.longest_wait <= lane.room:
        return ""
    days = forecast.longest_wait / 86_400
    return (
        f"Too many at once: the last message would wait for {days:.1f} days in the queue {lane.queue}, which "
        f"keeps messages for {lane.kept_days} (mailroom.{forecast.stage}.{lane.keys.kept}), a part of it for "
        f"retries; after that SQS deletes them silently. At most {int(lane.room * forecast.speed):,} fit."
    )
