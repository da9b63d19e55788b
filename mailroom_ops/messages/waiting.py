"""Place of a message that waits: why it waits, how many wait before it, and about how long."""

import time
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.clock import Clock, iso
from mailroom.environment import DispatchSettings, LineSettings
from mailroom.ledger.status_reader import MessageStatus
from mailroom_ops.shared.deployed_stage import depth, function_settings, name
from mailroom_ops.shared.screen import Refused
from mailroom_ops.shared.times import short

if TYPE_CHECKING:
    import boto3
    from types_boto3_dynamodb import DynamoDBClient

SEND_AT = "send_at"
"""Reason of a wait; here as well, for the module with all reasons needs boto3, which no --help waits for."""
WAITS_FOR = {
    SEND_AT: "its send_at",
    "outside_window": "its window",
    "day_used_up": "the day's quota",
    "provider_refuses": "its provider",
    "paused": "its campaign's run, which is paused",
}
"""Name of what a message waits for, by the reason of the wait."""
_UNTIL = {
    SEND_AT: "for its send_at, {}",
    "outside_window": "until its window opens, {}",
    "day_used_up": "for the day's quota, and is tried again about {}",
    "provider_refuses": "until its provider takes messages, and is tried about {}: see the dead letters",
    "paused": "for its campaign's run: mailroom campaign status shows who has paused the run, and why",
}
_DAY = 86_400
_UNKNOWN = (Refused, KeyError, ClientError, BotoCoreError)
"""Errors after which the time of a message is unknown."""


class Turn(Struct, frozen=True):
    """Position of a message in the line of messages that wait for the day."""

    before: int
    """Number of messages that were put earlier."""
    more: bool
    """Whether the count ended at its limit, so that more messages may wait before this one."""
    until: float
    """Time in epoch seconds at which the message is about to be sent: see `Outlook`."""


class Outlook(Struct, frozen=True):
    """Estimate of when messages of bulk are sent. Each message counts as one recipient, and these messages
    alone use the channel's pace and day."""

    until: float
    """Time in epoch seconds."""
    waits_for_day: bool
    """Whether bulk waits for the day's quota now."""


class ClosedDay(Struct, frozen=True):
    """Day of a channel whose part for bulk is used up."""

    channel: str
    until: str
    """Time at which the day has room again (ISO 8601)."""
    waiting: int
    """Number of messages that wait for the day."""
    more: bool
    """Whether the count ended at its limit, so that more messages may wait."""


class _Release(Struct, frozen=True, kw_only=True, rename="upper"):
    """Variables of the function `release` about lines."""

    ledger_table: str
    budgets_table: str
    lines: dict[str, LineSettings]


def turn_of(
    session: "boto3.Session", stage: str, message: MessageStatus, clock: Clock = time.time
) -> Turn | None:
    """Return the message's turn; None if it waits in no line, or if its turn cannot be told."""
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
    """Return when the last of so many messages of a channel's bulk is sent; None if that cannot be told."""
    try:
        return _outlook(session.client("dynamodb"), _release(session, stage), channel, messages - 1, clock)
    except _UNKNOWN:
        return None


def _release(session: "boto3.Session", stage: str) -> _Release:
    return function_settings(session.client("lambda"), name(stage, "release"), _Release)


def _outlook(
    dynamodb: "DynamoDBClient", variables: _Release, channel: str, before: int, clock: Clock
) -> Outlook:
    """Return the outlook of a message of bulk with so many before it."""
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
    """Return the days whose part for bulk is used up, or an empty list if budgets cannot be read."""
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
    """Return the place of a message that waits, as a sentence without its full stop."""
    if message.wait is None or not message.wait.line:
        return f"It waits {_UNTIL[message.waits_for].format(short(message.scheduled_for))}"
    if turn is None:
        return "It waits for the day's quota"
    behind, until = ("+", "beyond") if turn.more else ("", "until")
    time_ = short(iso(turn.until // 60 * 60))
    return f"It waits for the day's quota, behind {turn.before:,}{behind} others, {until} about {time_}"


def queued(session: "boto3.Session", stage: str) -> int:
    """Return about how many messages lie in the queues of the stage's lanes. A message is listed once a
    worker has looked at it."""
    variables = function_settings(session.client("lambda"), name(stage, "dispatch"), DispatchSettings)
    urls = {url for lanes in variables.routes.values() for url in lanes.values()} | {
        *variables.delayed_routes.values()
    }
    sqs = session.client("sqs")
    return sum(depth(sqs, url).all for url in urls)


def unlisted(count: int | None) -> str:
    """Return what an empty list says of the messages in queues, after its own words; "" if there are
    none."""
    return f" so far; {count:,} messages lie in queues and are not listed yet" if count else ""
