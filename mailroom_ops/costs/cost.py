"""The command `cost`: prints the monthly cost of messages and of the stage, and how long messages take."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import typer
from msgspec import Struct
from rich.table import Column, Table

from mailroom.errors import quantity
from mailroom_ops.costs.configured_lanes import ConfiguredLane, lane_of, read_settings
from mailroom_ops.costs.days import portions
from mailroom_ops.costs.message_cost import ASSUMED, DAYS_A_MONTH, message_parts
from mailroom_ops.costs.prices import CUSTOM_METRIC
from mailroom_ops.costs.stage_cost import stage_parts
from mailroom_ops.shared.options import AsJson, WrittenStage
from mailroom_ops.shared.screen import plain, print_answer, print_line, refusals, right, screen, table_of
from mailroom_ops.shared.times import exactly
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.settings.settings import Settings


class QueueCost(Struct, frozen=True):
    """Cost of one queue's messages in US dollars, and the time that the messages take."""

    queue: str
    provider: str
    """Name of the provider that sends the messages; empty if no setting names one."""
    messages: int
    parts: dict[str, float]
    not_included: str
    """Reason why the provider's price is not included; empty if it is included or the provider is free."""
    seconds: float
    """Time until the provider has accepted the last message, if all are put at the same time."""
    setting: str
    """Setting that limits the speed."""
    most_at_once: int
    """Number of messages that may be put at the same time. If more are put, the last ones wait for longer
    than the queue's retention, and SQS deletes them."""
    note: str
    """Sentence about delays that `seconds` does not include; empty if there are none."""


class Cost(Struct, frozen=True):
    """Output of the command `cost`: the cost of a month in US dollars."""

    stage: str
    queues: list[QueueCost]
    stage_parts: dict[str, float]
    """Cost of the stage itself, by part."""
    dollars: float


def cost(
    messages: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUEUE=COUNT",
            help="Messages a month by queue, such as mail, mail-bulk or mail-fallback; a fax takes a minute.",
        ),
    ] = None,
    stage: WrittenStage = "dev",
    *,
    ses_plan: Annotated[
        Literal["essentials", "none", "pro", "enterprise"],
        typer.Option(
            help="The account's plan at SES, as `mailroom doctor` prints it. A new account has essentials."
        ),
    ] = "essentials",
    as_json: AsJson = False,
) -> None:
    """Print what a stage and its messages cost in a month.

    The command also prints how long the messages take if all are put at the same time, and which setting
    limits their speed.

    The command synthesizes the stage from cdk.json, uses a dated price list, and works without AWS
    credentials. A provider's price is included if it is the same everywhere. The speed is the lower of the
    lane's rate and of the number of its workers divided by the time of a message; bulk messages also wait for
    the daily limit, which is unused at the start. Latencies vary, and other messages take time too, so the
    time is an estimate.

    Exit code 2: the stage does not have a queue, or its settings are invalid.

    Example: mailroom cost mail=20000 mail-bulk=1000000 --stage prod
    """
    # These imports load the CDK, which takes seconds.
    from mailroom_stacks.app.application import NagError
    from mailroom_stacks.deploy_policy.policies import read

    with refusals(SettingsError, NagError):
        # An unknown queue is refused before the synthesis, which takes seconds.
        settings = read_settings(stage)
        loads = {lane_of(settings, queue): count for queue, count in _counts(messages or ())}
        _, templates = read(stage, {})
    print_answer(month_cost(settings, templates, loads, ses_plan), _show, as_json=as_json)


def month_cost(
    settings: Settings,
    templates: Sequence[Mapping[str, Any]],
    loads: Mapping[ConfiguredLane, int],
    ses_plan: str = "",
) -> Cost:
    """Return the monthly cost of a stage with these settings and templates, and of the numbers of messages in
    `loads`."""
    queues = [
        _queue_cost(settings, lane, messages, time.time(), ses_plan) for lane, messages in loads.items()
    ]
    canaries = settings.monitoring.canaries_a_day
    senders = {lane.channel for lane in loads} | ({"mail"} if canaries else set())
    idle = multiplied(stage_parts(templates, len(senders)), 1)
    if canaries:
        parts = message_parts(settings, lane_of(settings, "mail"), ses_plan)
        idle["canaries"] = round(sum(parts.values()) * canaries * DAYS_A_MONTH + CUSTOM_METRIC, 8)
    total = sum(sum(parts.values()) for parts in (idle, *(queue.parts for queue in queues)))
    return Cost(settings.stage, queues, idle, round(total, 8))


def _queue_cost(
    settings: Settings, lane: ConfiguredLane, messages: int, start: float, ses_plan: str
) -> QueueCost:
    seconds, setting = sending_time(lane, messages, start)
    return QueueCost(
        queue=lane.queue,
        provider=lane.provider,
        messages=messages,
        parts=multiplied(message_parts(settings, lane, ses_plan), messages),
        not_included=lane.descriptor.unpriced,
        seconds=round(seconds, 1),
        setting=f"mailroom.{settings.stage}.{setting}",
        most_at_once=int(lane.longest_wait * lane.speed),
        note=lane.descriptor.note or lane.estimate.note,
    )


def sending_time(lane: ConfiguredLane, messages: int, start: float) -> tuple[float, str]:
    """Return the seconds until the last message is accepted, if all are put at `start` (epoch seconds), and
    the path of the setting that limits the speed."""
    times = {setting: messages / speed for setting, speed in lane.speeds.items()}
    if lane.per_day:
        *_, last = portions(messages, lane.per_day, lane.reserve, start)
        per_day = f"{lane.rate_setting.rpartition('.')[0]}.per_day"
        times[per_day] = last.begins - start + last.messages / lane.speed
    setting = max(times, key=lambda setting: times[setting])
    return max(times[setting], lane.seconds), setting


def _counts(texts: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Parse arguments such as mail=10000, and yield queues with their counts. Raises typer.BadParameter."""
    for text in texts:
        queue, _, count = text.partition("=")
        if not (queue and count.isdecimal() and int(count)):
            raise typer.BadParameter(f"{text!r:.60} is not a queue and a count; use mail=10000.")
        yield queue, int(count)


def _show(cost: Cost) -> None:
    for queue in cost.queues:
        provider = f" ({queue.provider})" if queue.provider else ""
        title = f"{quantity(queue.messages, 'message')} of {queue.queue}{provider}"
        screen.print(cost_table(title, queue.parts, queue.messages))
        if queue.not_included:
            print_line(f"Not included: the provider's price; {queue.not_included}.")
        print_line(f"Put at the same time, they take {exactly(queue.seconds)}, limited by {queue.setting}.")
        if queue.messages > queue.most_at_once:
            print_line(f"SQS deletes the last ones if over {queue.most_at_once:,} wait in the queue.", "red")
        if queue.note:
            print_line(queue.note)
    screen.print(cost_table(f"The stage {cost.stage} itself", cost.stage_parts))
    screen.print(plain(f"Together: {money(cost.dollars)} US dollars a month."), style="bold")
    for sentence in ASSUMED:
        print_line(sentence)


def multiplied(parts: Mapping[str, float], count: int) -> dict[str, float]:
    """Return the cost of `count` messages, without the digits that floating-point numbers add."""
    return {name: round(price * count, 8) for name, price in parts.items()}


def money(dollars: float) -> str:
    """Format dollars with two decimals, or without decimals from 10,000 on."""
    if dollars >= 10_000:
        return f"{dollars:,.0f}"
    return f"{dollars:,.2f}" if dollars >= 0.005 else "< 0.01"


def cost_table(title: str, parts: Mapping[str, float], messages: int = 0) -> Table:
    """Return a table of the parts of a cost and of their sum. With `messages`, it also has the cost of a
    million messages."""
    figures = {"US dollars": 1.0}
    if messages:
        figures["a million"] = 1_000_000 / messages
    total = sum(parts.values())
    footers = (right(heading, money(total * factor)) for heading, factor in figures.items())
    table = table_of(
        Column("part", "together"), *footers, show_footer=True, title=title, title_justify="left"
    )
    for name, price in parts.items():
        table.add_row(name, *(money(price * factor) for factor in figures.values()))
    return table
