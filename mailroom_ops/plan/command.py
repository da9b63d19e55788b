"""`plan`: how long many messages take, what bounds it, and what they cost."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

from mailroom.channels.channel import Estimate
from mailroom.channels.contracts import CHANNELS
from mailroom_ops.cost.command import money
from mailroom_ops.estimates.days import days_table
from mailroom_ops.estimates.prices import BETWEEN, DATED, estimate_of
from mailroom_ops.estimates.quotas import NEW_TABLE_WRITES
from mailroom_ops.options import AsJson, WrittenStage
from mailroom_ops.screen import errors, print_answer, print_line, right, screen, table_of
from mailroom_ops.times import exactly, speed_of

if TYPE_CHECKING:
    from mailroom_ops.estimates.forecast import Forecast
    from mailroom_ops.plan.answer import PlanOutput, SettingChange

_USUAL = Estimate().latency
_SECONDS = {name: channel.estimate.latency for name, channel in CHANNELS.items()}
_UNUSUAL = [f"{name} {seconds:g}" for name, seconds in _SECONDS.items() if seconds != _USUAL]
_LATENCIES = ", ".join([f"{_USUAL:g}", *_UNUSUAL])


def plan(
    channel: Annotated[str, typer.Option(help="The channel, such as mail, sms, push, fax or webhook.")],
    messages: Annotated[int, typer.Option(min=1, help="The number of messages.")],
    lane: Annotated[str, typer.Option(help="The lane; campaigns use bulk.")] = "normal",
    stage: WrittenStage = "dev",
    warm: Annotated[
        int,
        typer.Option(min=1, help="Write units a second that the mailbox and the ledger are each warmed for."),
    ] = NEW_TABLE_WRITES.value,
    latency: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Seconds of a message in a sender with a whole vCPU, for the provider's answer and the "
            "ledger's writes.",
            show_default=_LATENCIES,
        ),
    ] = None,
    between: Annotated[
        float, typer.Option(min=0, help="Seconds between two invocations of a function.")
    ] = BETWEEN,
    *,
    as_json: AsJson = False,
) -> None:
    """Estimate how long a number of messages takes with a stage's settings, what bounds it, and the cost.

    The command reads the settings in cdk.json and asks AWS nothing. The rate is the least of the lane's pace,
    its workers / the time of a message, and the quotas that AWS publishes; the time is messages / rate.
    Where the day has a limit, it says how many bulk messages go out on which day, and what is left for codes.
    Latencies vary, and nothing else is sent meanwhile, so this is an estimate.

    Exit code 1: the backlog would outlive the queue's retention. 2: the stage has no such channel or lane,
    or its settings are wrong.

    Example: mailroom plan --channel mail --messages 100000 --lane bulk --stage prod
    """
    # Settings are pydantic's, which the other commands need not wait for.
    from mailroom_ops.estimates.forecast import Forecast, Sending
    from mailroom_ops.estimates.lanes import Assumed, Stages
    from mailroom_ops.plan.answer import plan_output
    from mailroom_stacks.settings.sentences import SettingsError

    stages = Stages.of()
    try:
        sending = Sending(stages.lane(stage, channel, lane), Assumed.of(channel, latency, between))
        forecast = Forecast.of(stages, stage, sending, messages, warm)
        output = plan_output(stages, forecast, time.time())
    except SettingsError as error:
        print_line(str(error), "red", errors)
        raise typer.Exit(2) from None
    print_answer(output, lambda output: _show(output, forecast), as_json=as_json)
    raise typer.Exit(1 if output.warning else 0)


def _show(output: "PlanOutput", forecast: "Forecast") -> None:
    print_line(
        f"{output.messages:,} messages by {output.channel}, lane {output.lane}, of {output.stage}", "bold"
    )
    screen.print(_bounds(forecast))
    speed = f", {speed_of(forecast.speed)} a second."
    screen.print(Text.assemble("Estimated: ", (exactly(output.seconds), "bold"), speed), soft_wrap=True)
    if output.days:
        screen.print(days_table(output.days))
        print_line(
            f"Bounded by the day: mailroom.{output.stage}.channels.{output.channel}.per_day. Within it:"
        )
    bound, following, *_ = forecast.ranked
    share = forecast.sending.lane.share
    shared = f" (the share of the lane is {share:g})" if bound.name == "rate" and share != 1 else ""
    print_line(f"Bounded by {bound.words}: {bound.limit_in(forecast.stage)}{shared}.")
    limit, speed = following.limit_in(forecast.stage), speed_of(following.speed)
    print_line(f"After that by {following.words}: {limit}, at {speed} a second.")
    for change in output.changes:
        print_line(_changed(change, output))
    screen.print(_costs(output))
    for sentence in (*_assumed(forecast), *output.notes):
        print_line(sentence)
    if output.warning:
        print_line(output.warning, "red")


def _bounds(forecast: "Forecast") -> Table:
    table = table_of("bound", "how", right("a second"), right("all take at least"))
    for at, each in enumerate(forecast.ranked):
        least = exactly(forecast.messages / each.speed)
        table.add_row(each.name, each.how, speed_of(each.speed), least, style="dim" if at else "bold")
    return table


def _changed(change: "SettingChange", output: "PlanOutput") -> str:
    what = f"{change.setting} {change.now:g} -> {change.then:g}"
    if change.seconds is None:
        return f"{what} is not possible by itself: {change.forbidden}"
    provider = estimate_of(output.channel).provider or "the provider"
    leave = f", if {provider} allows it" if output.bound == "rate" else ""
    return f"{what} would make it {exactly(change.seconds)}{leave}."


def _assumed(forecast: "Forecast") -> Iterator[str]:
    sending, lane = forecast.sending, forecast.sending.lane
    yield f"Assumed: {sending.assumed.latency:g} s a message in a sender with a whole vCPU (--latency)."
    yield (
        f"Computed: {sending.latency:.3g} s with {lane.memory_mb} MB, {lane.vcpu:.0%} of a vCPU, and "
        f"{lane.at_once} at a time."
    )
    yield f"Assumed: {sending.assumed.between:g} s from one invocation to the next (--between)."
    if unpriced := lane.estimate.unpriced:
        yield f"The provider's price for {lane.channel} is not included: {unpriced}."


def _costs(output: "PlanOutput") -> Table:
    table = table_of(
        Column("cost", "together"),
        right("US dollars", money(sum(output.dollars.values()))),
        show_footer=True,
        caption=DATED,
        caption_justify="left",
    )
    for name, price in output.dollars.items():
        table.add_row(name, money(price))
    return table
