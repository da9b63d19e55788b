"""What `cost` answers."""

import json
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from ops.cost import assumed
from ops.cost.fixed import Resources
from ops.cost.fixed import dollars as fixed_dollars
from ops.cost.parts import Around, parts, request
from ops.plan.answer import answer as planned
from ops.plan.assumed import BETWEEN, latency_of
from ops.plan.lanes import CDK_JSON, Lane, Stages
from ops.plan.model import Assumed, Plan
from ops.prices import DATED, PROVIDERS, UNPRICED, Use
from ops.prices import dollars as sent_dollars
from stacks.settings.load import load
from stacks.settings.stage import Settings

API = "api"
"""What comes by the HTTP API, among the channels."""


class Wanted(Struct, frozen=True):
    """So many messages a month by a channel; bulk goes by the lane of campaigns."""

    channel: str
    messages: int
    lane: str = "normal"


class ChannelCost(Struct, frozen=True):
    """What one channel's messages cost a month, in US dollars. `not_included` is why the provider's price is
    not; "": it is, or nobody takes one."""

    channel: str
    lane: str
    messages: int
    parts: dict[str, float]
    dollars: float
    dollars_per_1000: float
    not_included: str


class FixedCost(Struct, frozen=True):
    """What the stage costs a month where nothing is sent, in US dollars."""

    resources: Resources
    parts: dict[str, float]
    dollars: float


class Cost(Struct, frozen=True):
    """All of it, a month, in US dollars. `alone` is what messages that come one by one would cost more."""

    stage: str
    priced: str
    channels: list[ChannelCost]
    fixed: FixedCost
    dollars: float
    dollars_per_1000: float | None
    alone: float
    assumptions: list[str]


def settings_of(stage: str, path: Path = CDK_JSON) -> Settings:
    """A stage's settings. Raises SettingsError."""
    return load(json.loads(path.read_text())["context"]["mailroom"], stage)


def cost(
    stages: Stages,
    settings: Settings,
    wanted: Sequence[Wanted],
    resources: Resources,
    *,
    callbacks: bool = False,
    requests: int = 0,
) -> Cost:
    """The cost of a month with these messages, `requests` of them by the HTTP API.

    Raises SettingsError for a channel or a lane that the stage does not have.
    """
    lanes = [stages.lane(settings.stage, each.channel, each.lane) for each in wanted]
    channels = [
        _channel(stages, Around(settings, lane, callbacks), each.messages)
        for lane, each in zip(lanes, wanted, strict=True)
    ]
    if requests:
        channels.append(
            _costs(API, "normal", requests, {k: v * requests for k, v in request(settings).items()})
        )
    parts_of_stage = fixed_dollars(resources, len(wanted))
    fixed = FixedCost(resources, _rounded(parts_of_stage), _cents(sum(parts_of_stage.values())))
    total = sum(each.dollars for each in channels) + fixed.dollars
    messages = sum(each.messages for each in wanted)
    return Cost(
        settings.stage,
        DATED,
        channels,
        fixed,
        _cents(total),
        round(total / messages * 1000, 6) if messages else None,
        _cents(sum(_alone(lane, each.messages) for lane, each in zip(lanes, wanted, strict=True))),
        assumed.sentences(forever=settings.retention.mailbox_days is None, callbacks=callbacks),
    )


def _channel(stages: Stages, around: Around, messages: int) -> ChannelCost:
    lane = around.lane
    sent = planned(stages, around.settings.stage, lane, _assumed(lane), messages).dollars
    beside = {name: price * messages for name, price in parts(around).items()}
    # Who sends stands last, as in a plan.
    provider = {name: sent.pop(name) for name, _ in [PROVIDERS.get(lane.channel, ("", 0))] if name in sent}
    return _costs(lane.channel, lane.name, messages, {**sent, **beside, **provider})


def _costs(channel: str, lane: str, messages: int, found: dict[str, float]) -> ChannelCost:
    total = sum(found.values())
    per_1000 = round(total / messages * 1000, 6)
    missing = UNPRICED.get(channel, "")
    return ChannelCost(channel, lane, messages, _rounded(found), _cents(total), per_1000, missing)


def _assumed(lane: Lane) -> Assumed:
    return Assumed(latency_of(lane.channel), BETWEEN)


def _alone(lane: Lane, messages: int) -> float:
    """What one batch each costs more than full ones: requests, invocations, and the sender's time."""

    def of(batch: int) -> float:
        senders = type(lane.senders)(lane.workers, batch, lane.senders.rate)
        seconds = Plan(senders, _assumed(lane), messages).invocation / batch
        use = Use(lane.channel, seconds, lane.memory_mb, batch, 0, lane.fifo)
        return sum(sent_dollars(use, messages).values())

    return of(1) - of(lane.batch)


def _rounded(found: dict[str, float]) -> dict[str, float]:
    return {name: _cents(price) for name, price in found.items()}


def _cents(price: float) -> float:
    """To a hundredth of a cent: less means nothing, more would hide what a thousand messages cost."""
    return round(price, 4)
