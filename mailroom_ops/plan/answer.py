"""What `plan` answers: how long, what bounds it, which setting would change that, what it costs."""

from collections.abc import Iterator

from msgspec import Struct

from mailroom_ops.estimates.days import DayShare, Portion, days, portions
from mailroom_ops.estimates.forecast import Forecast, wait_price
from mailroom_ops.estimates.lanes import Assumed, Stages
from mailroom_ops.estimates.quotas import LEAST_WORKERS, MOST_WORKERS
from mailroom_stacks.settings.sentences import SettingsError

WAITS = "waits for the day"
"""Part of the cost: messages that are held until the day has room."""
CONTENT_KB = 1
"""Size in KB of a content that waits, compressed; assumed."""


class SettingChange(Struct, frozen=True):
    """A setting by its full key, and how long all would take with another value, or what forbids it."""

    setting: str
    now: float
    then: float
    seconds: float | None
    forbidden: str = ""


class PlanOutput(Struct, frozen=True, kw_only=True):
    """A plan for programs: times in seconds, money in US dollars. `bounds`: messages a second that each bound
    would allow without the others; `limits`: the setting or quota that it follows from; `bound` and
    `next_bound`: the lowest, and the lowest but that. `days`: on which days they go out, if some wait for
    the day's quota; `seconds` counts that wait. `provider_priced`: whether `dollars` include the provider's
    price; `warning`: why so many do not fit; "": they do."""

    stage: str
    channel: str
    lane: str
    messages: int
    seconds: float
    messages_per_second: float
    days: list[DayShare]
    bound: str
    next_bound: str
    bounds: dict[str, float]
    limits: dict[str, str]
    assumed: Assumed
    changes: list[SettingChange]
    dollars: dict[str, float]
    provider_priced: bool
    notes: list[str]
    warning: str


def plan_output(stages: Stages, forecast: Forecast, now: float) -> PlanOutput:
    """`now`: when they are put, in epoch seconds."""
    lane, stage = forecast.sending.lane, forecast.stage
    bound, following, *_ = forecast.ranked
    shares, seconds = _days(stages, forecast, now)
    return PlanOutput(
        stage=stage,
        channel=lane.channel,
        lane=lane.name,
        messages=forecast.messages,
        seconds=round(seconds, 1),
        messages_per_second=round(forecast.speed, 3),
        days=shares,
        bound=bound.name,
        next_bound=following.name,
        bounds={each.name: round(each.speed, 3) for each in forecast.bounds},
        limits={each.name: each.limit_in(stage) for each in forecast.bounds},
        assumed=forecast.sending.assumed,
        # A higher rate ends nothing sooner that waits for the day's quota.
        changes=[] if shares else list(_changes(stages, forecast)),
        dollars={name: round(price, 4) for name, price in _dollars(forecast, shares).items()},
        provider_priced=bool(lane.estimate.provider),
        notes=[*_notes(forecast)],
        warning=_warning(forecast),
    )


def _days(stages: Stages, forecast: Forecast, now: float) -> tuple[list[DayShare], float]:
    """Return the days on which the messages go out, if some of them wait for the day's quota, and the
    seconds until the last."""
    lane, speed = forecast.sending.lane, forecast.speed
    row = stages.settings(forecast.stage).channels.get(lane.channel)
    if row is None or not row.days or lane.name != "bulk":
        return [], forecast.seconds
    of_day = (row.days, row.lanes["normal"].reserve)
    parts: list[Portion] = [*portions(forecast.messages, *of_day, now, speed=speed)]
    seconds = parts[-1].begins + parts[-1].messages / speed - now
    if seconds < forecast.seconds + 1:
        return [], forecast.seconds
    return days(parts, *of_day), seconds


def _dollars(forecast: Forecast, days: list[DayShare]) -> dict[str, float]:
    """Return what the messages cost, by part. Messages beyond the first day are held."""
    dollars = forecast.sending.dollars(forecast.messages)
    if days:
        waiting = forecast.messages - days[0].messages
        dollars = {WAITS: waiting * wait_price(forecast.sending.lane, CONTENT_KB), **dollars}
    return dollars


def _changes(stages: Stages, forecast: Forecast) -> Iterator[SettingChange]:
    """The value of the lowest bound's setting that lifts it: twice the rate; the workers that the rate needs,
    or a whole batch at a time."""
    sending, lane, bound = forecast.sending, forecast.sending.lane, forecast.ranked[0].name
    if bound == "rate" and lane.keys.rate and lane.allowed:
        yield _change(stages, forecast, lane.keys.rate, lane.allowed, lane.allowed * 2)
    elif bound == "workers":
        workers = min(sending.workers_for_rate() or lane.workers * 2, MOST_WORKERS)
        if workers > lane.workers:
            yield _change(stages, forecast, lane.keys.workers, lane.workers, workers)
        if lane.keys.at_once and lane.at_once < lane.batch:
            yield _change(stages, forecast, lane.keys.at_once, lane.at_once, lane.batch)


def _change(stages: Stages, forecast: Forecast, key: str, now: float, then: float) -> SettingChange:
    setting = f"mailroom.{forecast.stage}.{key}"
    try:
        changed = forecast.again(stages.changed(forecast.stage, key, then))
    except SettingsError as error:
        return SettingChange(setting, now, then, None, str(error))
    return SettingChange(setting, now, then, round(changed.seconds, 1))


def _notes(forecast: Forecast) -> Iterator[str]:
    lane, sending = forecast.sending.lane, forecast.sending
    if sending.waiting > sending.working:
        needed = max(LEAST_WORKERS, sending.workers_for_rate() or 0)
        fewer = f"; {needed} workers ({lane.keys.workers}) are enough" if needed < lane.workers else ""
        yield f"Functions cost more while they wait for their pace than while they work{fewer}."
    if note := lane.estimate.note:
        yield note
    if lane.name == "bulk":
        yield "Composing itself is not in the cost: collect, compose, their queues and what they read."


def _warning(forecast: Forecast) -> str:
    lane = forecast.sending.lane
    if forecast.seconds <= lane.room:
        return ""
    days = forecast.seconds / 86_400
    key = f" (mailroom.{forecast.stage}.{lane.keys.kept})" if lane.keys.kept else ""
    return (
        f"Too many at once: the last message would wait for {days:.1f} days in the queue {lane.queue}, which "
        f"keeps messages for {lane.kept_days}{key}, a part of it for retries; after that SQS deletes them "
        f"silently. At most {int(lane.room * forecast.speed):,} fit."
    )
