"""What `cost` answers."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import Struct

from mailroom_ops.cost.fixed import Resources
from mailroom_ops.cost.fixed import dollars as fixed_dollars
from mailroom_ops.cost.parts import MessagePath, assumptions, parts, request_parts
from mailroom_ops.estimates.forecast import Sending
from mailroom_ops.estimates.lanes import Assumed, ConfiguredLane, Stages
from mailroom_ops.estimates.prices import DATED, SES_MAIL

API = "api"
"""What comes by the HTTP API, among the channels."""


class WantedMessages(Struct, frozen=True):
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


def cost(
    stages: Stages,
    stage: str,
    wanted: Sequence[WantedMessages],
    resources: Resources,
    *,
    callbacks: bool = False,
    requests: int = 0,
    ses_mail: float = SES_MAIL,
) -> Cost:
    """The cost of a month with these messages, `requests` of them by the HTTP API; SES takes `ses_mail` US
    dollars a mail.

    Raises SettingsError for a channel or a lane that the stage does not have.
    """
    settings = stages.settings(stage)
    lanes = [(stages.lane(stage, each.channel, each.lane), each.messages) for each in wanted]
    channels = [
        _channel(MessagePath(settings, lane, callbacks), messages, ses_mail) for lane, messages in lanes
    ]
    if requests:
        found = {name: price * requests for name, price in request_parts(settings).items()}
        channels.append(_costs(API, "normal", requests, found, ""))
    parts_of_stage = fixed_dollars(resources, len(wanted))
    fixed = FixedCost(resources, _rounded(parts_of_stage), _cents(sum(parts_of_stage.values())))
    total = sum(each.dollars for each in channels) + fixed.dollars
    messages = sum(each.messages for each in wanted)
    return Cost(
        stage,
        DATED,
        channels,
        fixed,
        _cents(total),
        round(total / messages * 1000, 6) if messages else None,
        _cents(sum(_alone(lane, messages) for lane, messages in lanes)),
        assumptions(forever=settings.retention.mailbox_days is None, callbacks=callbacks),
    )


def _channel(path: MessagePath, messages: int, ses_mail: float) -> ChannelCost:
    lane = path.lane
    sent = _sent(lane, messages)
    beside = {name: price * messages for name, price in parts(path).items()}
    # The provider stands last, as in a plan.
    provider = {name: sent.pop(name) for name in (path.estimate.provider,) if name in sent}
    if "SES" in provider:
        provider["SES"] = ses_mail * messages
    found = {**sent, **beside, **provider}
    return _costs(lane.channel, lane.name, messages, found, path.estimate.unpriced)


def _costs(channel: str, lane: str, messages: int, found: dict[str, float], missing: str) -> ChannelCost:
    total = sum(found.values())
    per_1000 = round(total / messages * 1000, 6)
    return ChannelCost(channel, lane, messages, _rounded(found), _cents(total), per_1000, missing)


def _sent(lane: ConfiguredLane, messages: int) -> dict[str, float]:
    return Sending(lane, Assumed.of(lane.channel)).dollars(messages)


def _alone(lane: ConfiguredLane, messages: int) -> float:
    """What one batch each costs more than full ones: requests, invocations, and the sender's time."""
    return sum(_sent(replace(lane, batch=1), messages).values()) - sum(_sent(lane, messages).values())


def _rounded(found: dict[str, float]) -> dict[str, float]:
    return {name: _cents(price) for name, price in found.items()}


def _cents(price: float) -> float:
    """To a hundredth of a cent: less means nothing, more would hide what a thousand messages cost."""
    return round(price, 4)
