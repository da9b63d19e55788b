"""`watch`: the queues, as they fill and empty."""

import time
from collections.abc import Callable, Iterator
from typing import Annotated

import boto3
import typer
from rich import box
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ops.messages.look import Look, Looking, Queue
from ops.screen import AsJson, Stage, aws_faults, plain, print_json, screen
from ops.times import duration, short


def watch(
    stage: Stage = "dev",
    *,
    channel: Annotated[str | None, typer.Option(help="The queues of that channel alone.")] = None,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds from one look to the next.")] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what waits in each queue, the dead letters, and the alarms that ring, until Ctrl-C.

    The change is since the first look. Numbers are SQS's own, approximate ones; ages and alarms are
    CloudWatch's, some minutes late. With --json one object a line. Exit code 2: there is no such stage, or
    no such channel in it.

    Example: mailroom watch --channel mail --stage prod
    """
    with aws_faults(stage):
        looking = Looking(boto3.Session(), stage, channel)
        looks = _looks(looking, interval, once=once)
        try:
            if as_json:
                for look in looks:
                    print_json(look)
            elif once or not screen.is_terminal:
                for look in looks:
                    screen.print(_shown(look))
            else:
                _live(looks)
        except KeyboardInterrupt:
            return


def _looks(
    looking: Looking,
    interval: float,
    *,
    once: bool,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Look]:
    while True:
        began = clock()
        yield looking.look(began)
        if once:
            return
        sleep(max(0.0, interval - (clock() - began)))


def _live(looks: Iterator[Look]) -> None:
    with Live(console=screen, auto_refresh=False, vertical_overflow="visible") as live:
        for look in looks:
            live.update(_shown(look), refresh=True)


def _shown(look: Look) -> RenderableType:
    summary = f"{look.stage}, {short(look.at)}: {look.waiting:,} on their way, {look.dead:,} dead letters."
    parts: list[RenderableType] = [Text(summary, style="bold red" if look.dead else "bold")]
    parts.append(_table(look.queues))
    if look.alarms is None:
        parts.append(plain(look.note))
    elif look.alarms:
        parts += [
            Text.assemble(("ALARM ", "red"), plain(f"{each.name} since {short(each.since)}"))
            for each in look.alarms
        ]
    else:
        parts.append(Text("No alarm rings."))
    return Group(*parts)


def _table(queues: list[Queue]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("queue")
    for heading in ("visible", "in flight", "delayed", "oldest", "change"):
        table.add_column(heading, justify="right")
    for each in queues:
        age = "" if each.oldest_seconds is None else duration(each.oldest_seconds)
        figures = (
            f"{number:,}" if number else "·" for number in (each.visible, each.in_flight, each.delayed)
        )
        change = f"{each.change:+,}" if each.change else ""
        style = "red" if each.is_dead and each.holds else "dim" if not each.holds else ""
        table.add_row(plain(each.name), *figures, age, change, style=style)
    return table
