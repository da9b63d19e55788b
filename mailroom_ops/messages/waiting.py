"""Position of a waiting message: why it waits, how many messages wait before it, and about until when."""

import time
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.clock import Clock, iso
from mailroom.environment import DispatchSettings, LineSettings
from mailroom.errors import quantity
from mailroom.ledger.items import PAUSED, RUN_UNKNOWN
from mailroom.ledger.status_reader import MessageStatus
from mailroom_ops.shared.deployed_stage import depth, function_settings, name
from mailroom_ops.shared.screen import Refused
from mailroom_ops.shared.times import short

if TYPE_CHECKING:
    import boto3
    from types_boto3_dynamodb import DynamoDBClient

SEND_AT = "send_at"
"""Reason of a wait. It is repeated here, because the module with all reasons imports boto3, which would delay
`--help`."""
WAITS_FOR = {
    SEND_AT: "its send_at",
    "outside_window": "its window",
    "day_used_up": "the daily quota",
    "provider_refuses": "its provider",
    PAUSED: "its campaign's run (paused)",
    RUN_UNKNOWN: "its campaign's run (unknown)",
}
"""Description of what a message waits for, by the reason of the wait."""
_UNTIL = {
    SEND_AT: "for its send_at, {}",
    "outside_window": "until its window opens, {}",
    "day_used_up": "for the daily quota, and is tried again about {}",
    "provider_refuses": "until its provider accepts messages, and is tried about {}; dead letters show why",
    PAUSED: "for its campaign's run: mailroom campaign status {campaign} shows who paused the run, and why",
    RUN_UNKNOWN: "for its campaign's run, which is missing or cannot be read: see mailroom campaign status "
    "{campaign}, and mailroom docs run-unknown, which shows how to end the wait",
}
_DAY = 86_400
_UNKNOWN = (Refused, KeyError, ClientError, BotoCoreError)
"""Exceptions after which a message is shown without an estimate of its time."""


class Turn(Struct, frozen=True):
    """Position of a message among the messages that wait for a channel's daily quota."""

    before: int
    """Number of waiting messages that were put earlier."""
    more: bool
    """Whether the count ended at its limit, so that more messages may wait before this one."""
    until: float
    """Estimated time, in epoch seconds, at which the message is sent: see `Outlook`."""


class Outlook(Struct, frozen=True):
    """Estimate of when a message in a channel's lane bulk is sent. It assumes that each message has one
    recipient, and that only these messages use the channel's rate limit and daily quota."""

    until: float
    """Time in epoch seconds."""
    waits_for_day: bool
    """Whether messages in the lane bulk have to wait for the daily quota now."""


class ClosedDay(Struct, frozen=True):
    """Channel whose daily quota for the lane bulk is used up."""

    channel: str
    until: str
    """Time at which the quota has capacity again (ISO 8601)."""
    waiting: int
    """Number of messages that wait for the quota."""
    more: bool
    """Whether the count ended at its limit, so that more messages may wait."""


class _Release(Struct, frozen=True, kw_only=True, rename="upper"):
    """Environment variables of the function `release` with the settings of each channel's line of waiting
    messages."""

    ledger_table: str
    budgets_table: str
    lines: dict[str, LineSettings]


def turn_of(
    session: "boto3.Session", stage: str, message: MessageStatus, clock: Clock = time.time
) -> Turn | None:
    """Return the position of a message that waits for a daily quota. Return None if the message does not wait
    for one, or if the position cannot be read."""
    if not message.waits_for or message.wait is None or not message.wait.line:
        return None
    from mailroom.ledger.waits import MOST_COUNTED, Waits

    try:
        variables, dynamodb = _release(session, stage), session.client("dynamodb")
        waits = Waits(dynamodb, variables.ledger_table, 0, clock)
        before = waits.before(message.wait.line, message.wait.place)
        outlook = _outlook(dynamodb, variables, message.wait.line, before, clock)
    except _UNKNOWN:
        return None
    return Turn(before, before >= MOST_COUNTED, outlook.until)


def outlook_of(
    session: "boto3.Session", stage: str, channel: str, messages: int, clock: Clock = time.time
) -> Outlook | None:
    """Return the estimate for the last of `messages` new messages in a channel's lane bulk, or None if the
    stage's settings or budgets cannot be read."""
    try:
        return _outlook(session.client("dynamodb"), _release(session, stage), channel, messages - 1, clock)
    except _UNKNOWN:
        return None


def _release(session: "boto3.Session", stage: str) -> _Release:
    return function_settings(session.client("lambda"), name(stage, "release"), _Release)


def _outlook(
    dynamodb: "DynamoDBClient", variables: _Release, channel: str, before: int, clock: Clock
) -> Outlook:
    """Return the estimate for a message in the lane bulk that has `before` messages before it."""
    from mailroom.budget import Budget

    line = variables.lines[channel]
    until = clock() + before / line.per_second
    if not line.per_day:
        return Outlook(until, waits_for_day=False)
    budget = Budget(dynamodb, variables.budgets_table, channel, line.per_day, line.reserve, clock)
    days, remainder = divmod(before, max(1, budget.part()))
    room = budget.room(remainder + 1)
    return Outlook(max(until, room.again + days * _DAY), waits_for_day=not room.recipients)


def closed_days(session: "boto3.Session", stage: str, clock: Clock) -> list[ClosedDay]:
    """Return the channels whose daily quota for the lane bulk is used up, or an empty list if the budgets
    cannot be read."""
    from mailroom.budget import Budget
    from mailroom.ledger.waits import MOST_COUNTED, Waits

    days = []
    try:
        variables, dynamodb = _release(session, stage), session.client("dynamodb")
        waits = Waits(dynamodb, variables.ledger_table, 0, clock)
        for channel, line in variables.lines.items():
            budget = Budget(dynamodb, variables.budgets_table, channel, line.per_day, line.reserve, clock)
            if line.per_day and (again := budget.room().again) > clock():
                waiting = waits.before(channel, int(clock()) + 1)
                days.append(ClosedDay(channel, iso(again), waiting, waiting >= MOST_COUNTED))
    except _UNKNOWN:
        return []
    return days


def place_of(message: MessageStatus, turn: Turn | None) -> str:
    """Describe the position of a waiting message in a sentence without its full stop."""
    if message.wait is None or not message.wait.line:
        until = _UNTIL[message.waits_for]
        return f"It waits {until.format(short(message.scheduled_for), campaign=message.campaign)}"
    if turn is None:
        return "It waits for the daily quota"
    behind, until = quantity(turn.before, "other"), "until"
    if turn.more:
        behind, until = f"{turn.before:,}+ others", "beyond"
    time_ = short(iso(turn.until // 60 * 60))
    return f"It waits for the daily quota, behind {behind}, {until} about {time_}"


def queued(session: "boto3.Session", stage: str) -> int:
    """Return the approximate number of messages in the queues of the stage's lanes. They are not in `mailroom
    list` before a worker has received them."""
    variables = function_settings(session.client("lambda"), name(stage, "dispatch"), DispatchSettings)
    urls = {url for lanes in variables.routes.values() for url in lanes.values()} | {
        *variables.delayed_routes.values()
    }
    sqs = session.client("sqs")
    return sum(depth(sqs, url).all for url in urls)


def unlisted(count: int | None) -> str:
    """Return the end of the sentence about an empty list: the number of messages in queues, or an empty text
    if the queues are empty."""
    if not count:
        return ""
    return f" so far; {quantity(count, 'message is', 'messages are')} in queues and not listed yet"
