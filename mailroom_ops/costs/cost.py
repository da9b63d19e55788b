"""The command `cost`: prints the monthly cost of messages and of the stage."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from msgspec import Struct
from rich.table import Column, Table

from mailroom_ops.costs.configured_lanes import ConfiguredLane, lane_of, read_settings
from mailroom_ops.costs.message_cost import ASSUMED, DAYS_A_MONTH, message_parts
from mailroom_ops.costs.prices import CUSTOM_METRIC
from mailroom_ops.costs.stage_cost import stage_parts
from mailroom_ops.shared.options import AsJson, WrittenStage
from mailroom_ops.shared.screen import plain, print_answer, print_line, refusals, right, screen, table_of
from mailroom_stacks.settings.channels import OF_FALLBACK, fallback_lane
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.settings.settings import Settings


class ChannelCost(Struct, frozen=True):
    """Monthly cost of one channel's messages, in US dollars."""

    channel: str
    lane: str
    messages: int
    parts: dict[str, float]
    not_included: str = ""
    """Reason why the provider's price is not included; empty if it is included or the provider is free."""
    provider: str = ""
    """Name of the provider that sends the messages; empty if no setting names one."""


class Cost(Struct, frozen=True):
    """Output of the command `cost`: the cost of a month in US dollars."""

    stage: str
    channels: list[ChannelCost]
    stage_parts: dict[str, float]
    """Cost of the stage itself, by part."""
    dollars: float


def cost(
    messages: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CHANNEL=COUNT",
            help="Messages a month by channel; a fax takes one minute. Messages of a second provider are "
            "mail-fallback=COUNT or sms-fallback=COUNT.",
        ),
    ] = None,
    stage: WrittenStage = "dev",
    *,
    bulk: Annotated[bool, typer.Option("--bulk", help="Count mails as sent by the lane bulk.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the monthly cost of messages on AWS, by channel and part, and the cost of the stage itself.

    The command synthesizes the stage from cdk.json, uses a dated price list, and works without AWS
    credentials. A provider's price is included if it is the same everywhere.

    Exit code 2: the stage does not have a channel, or its settings are invalid.

    Example: mailroom cost mail=1000000 sms=20000 --stage prod
    """
    # These imports load the CDK, which takes seconds.
    from mailroom_stacks.app.application import NagError
    from mailroom_stacks.deploy_policy.policies import read

    with refusals(SettingsError, NagError):
        # An unknown channel is refused before the synthesis, which takes seconds.
        settings = read_settings(stage)
        loads = {
            lane_of(settings, *_lane(channel, bulk=bulk)): count for channel, count in _counts(messages or ())
        }
        _, templates = read(stage, {})
    print_answer(month_cost(settings, templates, loads), _show, as_json=as_json)


def month_cost(
    settings: Settings, templates: Sequence[Mapping[str, Any]], loads: Mapping[ConfiguredLane, int]
) -> Cost:
    """Return the monthly cost of a stage with these settings and templates, and of the numbers of messages in
    `loads`."""
    channels = []
    for lane, messages in loads.items():
        parts = message_parts(settings, lane)
        missing = lane.estimate.unpriced
        priced = multiplied(parts, messages)
        channels.append(ChannelCost(lane.channel, lane.name, messages, priced, missing, lane.provider))
    canaries = settings.monitoring.canaries_a_day
    senders = {lane.channel for lane in loads} | ({"mail"} if canaries else set())
    idle = multiplied(stage_parts(templates, len(senders)), 1)
    if canaries:
        parts = message_parts(settings, lane_of(settings, "mail"))
        idle["canaries"] = round(sum(parts.values()) * canaries * DAYS_A_MONTH + CUSTOM_METRIC, 8)
    total = sum(sum(parts.values()) for parts in (idle, *(channel.parts for channel in channels)))
    return Cost(settings.stage, channels, idle, round(total, 8))


def _lane(channel: str, *, bulk: bool) -> tuple[str, str]:
    """Return the channel and the lane of an argument such as mail or mail-fallback."""
    name = channel.removesuffix(OF_FALLBACK)
    lane = "bulk" if bulk and name == "mail" else "normal"
    return name, lane if name == channel else fallback_lane(lane)


def _counts(texts: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Parse arguments such as mail=10000, and yield channels with their counts. Raises typer.BadParameter."""
    for text in texts:
        channel, _, count = text.partition("=")
        if not (channel and count.isdecimal()):
            raise typer.BadParameter(f"{text!r:.60} is not a channel and a count; use mail=10000.")
        yield channel, int(count)


def _show(cost: Cost) -> None:
    for channel in cost.channels:
        provider = f" ({channel.provider})" if channel.provider else ""
        lane = "" if channel.lane == "normal" else f", lane {channel.lane}"
        title = f"{channel.messages:,} messages by {channel.channel}{provider}{lane}"
        screen.print(cost_table(title, channel.parts, channel.messages))
        if channel.not_included:
            print_line(f"Not included: the provider's price for {channel.channel}; {channel.not_included}.")
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
