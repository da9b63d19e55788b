"""A cost as an operator reads it."""

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table

from ops.cost.answer import API, ChannelCost, Cost
from ops.screen import plain


def show(cost: Cost, screen: Console) -> None:
    """Print it: a table a channel, what the stage itself costs, and what was assumed."""
    for each in cost.channels:
        screen.print(_channel(each))
        if each.not_included:
            note = f"Not included is what the provider of {each.channel} takes: {each.not_included}."
            screen.print(plain(note), soft_wrap=True)
    screen.print(_fixed(cost))
    screen.print(plain(f"Together: {money(cost.dollars)} US dollars a month{_each(cost)}."), style="bold")
    for sentence in _sentences(cost):
        screen.print(plain(sentence), soft_wrap=True)


def money(dollars: float) -> str:
    """In cents, and no more of them where there are thousands of dollars."""
    if dollars >= 10_000:
        return f"{dollars:,.0f}"
    return f"{dollars:,.2f}" if dollars >= 0.005 else "< 0.01"


def small(dollars: float) -> str:
    """What a thousand messages cost: often less than a cent."""
    if dollars >= 1:
        return f"{dollars:,.2f}"
    return f"{dollars:.4f}" if dollars >= 0.00005 else "< 0.0001"


def _each(cost: Cost) -> str:
    return f", {small(cost.dollars_per_1000)} a thousand messages" if cost.dollars_per_1000 else ""


def _channel(channel: ChannelCost) -> Table:
    lane = f", lane {channel.lane}" if channel.lane != "normal" else ""
    what = "requests of the HTTP API" if channel.channel == API else f"messages by {channel.channel}{lane}"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True, title_justify="left")
    table.title = f"{channel.messages:,} {what}"
    table.add_column("part", "together")
    table.add_column("a thousand", small(channel.dollars_per_1000), justify="right")
    table.add_column("a month", money(channel.dollars), justify="right")
    for name, price in channel.parts.items():
        table.add_row(name, small(price / channel.messages * 1000), money(price))
    return table


def _fixed(cost: Cost) -> Table:
    resources = cost.fixed.resources
    counts = {
        "alarms": resources.alarm_metrics,
        "dashboard": resources.dashboards,
        "polling of queues": resources.queues,
        "keys": resources.keys,
        "secrets": resources.secrets,
    }
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True, title_justify="left")
    table.title = f"The stage {cost.stage} itself"
    table.add_column("part", "together")
    table.add_column("how many", justify="right")
    table.add_column("a month", money(cost.fixed.dollars), justify="right")
    for name, price in cost.fixed.parts.items():
        count = counts.get(name)
        table.add_row(name, "" if count is None else f"{count}", money(price))
    return table


def _sentences(cost: Cost) -> Iterator[str]:
    yield f"Prices: {cost.priced}."
    if cost.fixed.resources.source == "settings":
        yield "The stage's alarms and the like were worked out from its settings; --fixed counts them."
    else:
        yield "The stage's alarms and the like were counted in its templates."
    if cost.alone >= 0.005:
        yield f"Messages that come one by one, and not in full batches, cost {money(cost.alone)} more."
    for sentence in cost.assumptions:
        yield f"Assumed: {sentence}"
