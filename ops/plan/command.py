"""`plan`: how long many messages take, what bounds it, and what they cost."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

from ops.cost.command import money
from ops.estimates.prices import BETWEEN, CHANNELS, DATED, ChannelEstimate, estimate_of
from ops.estimates.quotas import NEW_TABLE_WRITES
from ops.options import AsJson, WrittenStage
from ops.screen import errors, print_json, print_line, right, screen, table_of
from ops.times import exactly, speed_of

if TYPE_CHECKING:
    from ops.estimates.stations import Forecast, Station
    from ops.plan.answer import PaceCost, PlanOutput, SettingChange

_USUAL = ChannelEstimate().latency
_LATENCIES = ", ".join(
    [f"{_USUAL:g}", *(f"{name} {row.latency:g}" for name, row in CHANNELS.items() if row.latency != _USUAL)]
)


def plan(
    channel: Annotated[str, typer.Option(help="The channel, such as mail, sms, push, fax or webhook.")],
    messages: Annotated[int, typer.Option(min=1, help="The number of messages.")],
    lane: Annotated[str, typer.Option(help="The lane; campaigns use bulk.")] = "normal",
    stage: WrittenStage = "dev",
    rate: Annotated[
        float | None,
        typer.Option(min=0.001, help="Messages a second that are put.", show_default="all at once"),
    ] = None,
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
    callbacks: Annotated[bool, typer.Option("--callbacks", help="Each message has a callback_url.")] = False,
    as_json: AsJson = False,
) -> None:
    """Estimate how long a number of messages takes with a stage's settings, what bounds it, and the cost.

    The command reads the settings in cdk.json and asks AWS nothing. It follows messages through every station
    from the mailbox to the provider, with the quotas that AWS publishes. Nothing else is sent meanwhile.
    Latencies vary, so this is an estimate.

    Exit code 1: the backlog would outlive the queue's retention. 2: the stage has no such channel or lane,
    or its settings are wrong.

    Example: mailroom plan --channel mail --messages 100000 --lane bulk --stage prod
    """
    # Settings are pydantic's, which the other commands need not wait for.
    from ops.estimates.lanes import Assumed, Stages
    from ops.estimates.stations import Forecast, Load
    from ops.plan.answer import plan_output
    from stacks.settings.sentences import SettingsError

    stages = Stages.of()
    try:
        lanes = [stages.lane(stage, channel, lane)]
        assumed, load = Assumed.of(channel, latency, between), Load(messages, rate, warm, callbacks)
        forecast = Forecast.of(stages, stage, lanes, load, assumed)
        output = plan_output(stages, forecast)
    except SettingsError as error:
        print_line(str(error), "red", errors)
        raise typer.Exit(2) from None
    if as_json:
        print_json(output)
    else:
        _show(output, forecast)
    raise typer.Exit(1 if output.warning else 0)


def _show(output: "PlanOutput", forecast: "Forecast") -> None:
    load = forecast.load
    put = f", {speed_of(load.rate)} a second" if load.rate else ""
    print_line(
        f"{load.messages:,} messages by {output.channel}{put}, lane {output.lane}, of {output.stage}", "bold"
    )
    screen.print(_bounds(forecast))
    speed = f", {speed_of(forecast.sending)} a second."
    screen.print(Text.assemble("Estimated: ", (exactly(forecast.seconds), "bold"), speed), soft_wrap=True)
    if output.keeps_up:
        first, speed = _bound(forecast, forecast.bound), speed_of(forecast.speed)
        print_line(
            f"Nothing bounds this. With more a second, the first bound is {first}, at {speed} a second."
        )
    else:
        print_line(f"Bounded by {_bound(forecast, forecast.bound)}.")
        after, speed = _bound(forecast, forecast.following), speed_of(forecast.following.speed)
        print_line(f"After that by {after}, at {speed} a second.")
    for change in output.changes:
        print_line(_changed(change, output))
    screen.print(_costs(output))
    for sentence in (*_pace(output.pace), *_assumed(forecast), *output.notes):
        print_line(sentence)
    if output.warning:
        print_line(output.warning, "red")


def _bounds(forecast: "Forecast") -> Table:
    table = table_of("station", "how", right("a second"), right("all take at least"))
    for station in forecast.stations:
        style = "bold" if station == forecast.bound else "dim"
        least = exactly(forecast.load.messages / station.speed)
        table.add_row(station.name, station.how, speed_of(station.speed), least, style=style)
    return table


def _bound(forecast: "Forecast", station: "Station") -> str:
    share = forecast.lanes[0].share
    shared = f" (the share of the lane is {share:g})" if station.name == "rate" and share != 1 else ""
    return f"{station.words}: {station.limit_in(forecast.stage)}{shared}"


def _changed(change: "SettingChange", output: "PlanOutput") -> str:
    what = f"{change.setting} {change.now:g} -> {change.then:g}"
    if change.seconds is None:
        return f"{what} is not possible by itself: {change.forbidden}"
    provider = estimate_of(output.channel).provider or "the provider"
    leave = f", if {provider} allows it" if output.bound == "rate" else ""
    return f"{what} would make it {exactly(change.seconds)}{leave}."


def _pace(pace: "PaceCost | None") -> Iterator[str]:
    if not pace:
        return
    yield (
        f"A million messages cost {money(pace.waiting)} while functions wait for their pace, and "
        f"{money(pace.working)} while they work."
    )
    if pace.waiting > pace.working:
        yield "So you pay for the pace more than for the time that the provider takes."
    if pace.setting:
        now = f"{pace.setting} {pace.now:g} -> {pace.then:g}"
        yield f"{now} would make the wait {money(pace.waiting_then)} a million."
    else:
        yield (
            "No setting of the lane makes the wait cheaper at this rate. A higher rate would, or a larger "
            "share of it at another lane's expense."
        )


def _assumed(forecast: "Forecast") -> Iterator[str]:
    (lane,), (plan,) = forecast.lanes, forecast.plans
    senders = plan.senders
    yield f"Assumed: {plan.assumed.latency:g} s a message in a sender with a whole vCPU (--latency)."
    yield (
        f"Computed: {plan.latency:.3g} s with {lane.memory_mb} MB, {senders.vcpu:.0%} of a vCPU, and "
        f"{senders.at_once} at a time."
    )
    yield f"Assumed: {plan.assumed.between:g} s from one invocation to the next (--between)."
    if unpriced := estimate_of(lane.channel).unpriced:
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
