"""A plan as an operator reads it."""

from rich import box
from rich.console import Console
from rich.table import Table

from ops.plan.answer import Answer, Change
from ops.prices import DATED, PROVIDERS, UNPRICED
from ops.times import exactly


def show(answer: Answer, screen: Console) -> None:
    """Print it."""
    plan, lane = answer.plan, answer.lane

    def line(text: str, style: str = "") -> None:
        screen.print(text, style=style, soft_wrap=True, highlight=False)

    line(f"{plan.messages:,} messages by {lane.channel}, lane {lane.name}, of {answer.stage}", "bold")
    screen.print(_bounds(answer))
    line(f"Estimated: [bold]{exactly(plan.seconds)}[/bold], {speed_of(plan.speed)} a second.")
    line(f"Bounded by {_bound(answer)}.")
    for change in answer.changes:
        line(_changed(change, answer))
    screen.print(_costs(answer))
    line(f"Assumed: {plan.assumed.latency:g} s a message in its sender (--latency).")
    line(f"Assumed: {plan.assumed.between:g} s from one invocation to the next (--between).")
    if lane.channel in UNPRICED:
        line(f"Not in it is what the provider of {lane.channel} takes: {UNPRICED[lane.channel]}.")
    for note in answer.notes:
        line(note)
    if answer.warning:
        line(answer.warning, "red")


def speed_of(speed: float) -> str:
    """Messages a second, with no more digits than mean something."""
    return f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"


def _bounds(answer: Answer) -> Table:
    plan, lane = answer.plan, answer.lane
    batch = f"({lane.batch} x {plan.assumed.latency:g} s + {plan.assumed.between:g} s)"
    how = {"workers": f"{lane.workers} x {lane.batch} / {batch}"}
    if lane.allowed:
        how["rate"] = f"{lane.allowed:g}" + (f" x {lane.share:g}" if lane.share != 1 else "")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("bound")
    table.add_column("how")
    table.add_column("a second", justify="right")
    table.add_column("all take at least", justify="right")
    for name, speed in plan.bounds.items():
        style = "bold" if name == plan.bound else "dim"
        table.add_row(name, how[name], speed_of(speed), exactly(plan.messages / speed), style=style)
    return table


def _bound(answer: Answer) -> str:
    lane, stage = answer.lane, answer.stage
    if answer.plan.bound == "workers":
        return f"the number of workers: mailroom.{stage}.{lane.keys.workers}"
    share = f", of which the lane has a share of {lane.share:g}" if lane.share != 1 else ""
    return f"the rate: mailroom.{stage}.{lane.keys.rate}{share}"


def _changed(change: Change, answer: Answer) -> str:
    what = f"{change.setting} {change.now:g} -> {change.then:g}"
    if change.seconds is None:
        return f"{what} is not possible by itself: {change.forbidden}"
    provider = PROVIDERS.get(answer.lane.channel, ("the provider",))[0]
    leave = f", if {provider} allows it" if answer.plan.bound == "rate" else ""
    return f"{what} would make it {exactly(change.seconds)}{leave}."


def _costs(answer: Answer) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True)
    table.add_column("cost", "together")
    table.add_column("US dollars", _money(sum(answer.dollars.values())), justify="right")
    for name, price in answer.dollars.items():
        table.add_row(name, _money(price))
    table.caption = DATED
    table.caption_justify = "left"
    return table


def _money(dollars: float) -> str:
    return f"{dollars:,.2f}" if dollars >= 0.005 else "< 0.01"
