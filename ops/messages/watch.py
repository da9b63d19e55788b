"""`watch`: the queues of a stage as they fill and empty, its dead letters, and the alarms that ring."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mailroom.clock import iso
from ops import stage as stages
from ops.options import AsJson, Stage
from ops.screen import NotDeployed, Refused, aws_faults, plain, print_json, right, screen, table_of
from ops.stage import aws_session
from ops.times import duration, short

if TYPE_CHECKING:
    import boto3

_WORKERS = 8
_AGE = "ApproximateAgeOfOldestMessage"
_AGE_MINUTES = 10
"""SQS writes its metrics each minute, some minutes late."""


class QueueSnapshot(Struct, frozen=True):
    """One queue by its short name. `oldest_seconds` is how long the oldest message waits, as CloudWatch has
    it; null: it does not say. `change` is the difference from the first reading."""

    name: str
    visible: int
    in_flight: int
    delayed: int
    oldest_seconds: float | None
    change: int

    @property
    def holds(self) -> int:
        """All its messages."""
        return self.visible + self.in_flight + self.delayed


class RingingAlarm(Struct, frozen=True):
    """One alarm that rings: its name, and since when (ISO 8601)."""

    name: str
    since: str


class Snapshot(Struct, frozen=True):
    """The answer of `watch`. `alarms` null: CloudWatch could not be asked, and `note` says why."""

    at: str
    stage: str
    queues: list[QueueSnapshot]
    waiting: int
    dead: int
    alarms: list[RingingAlarm] | None
    note: str


def watch(
    stage: Stage = "dev",
    *,
    channel: Annotated[str | None, typer.Option(help="Show only the queues of this channel.")] = None,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, then end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what waits in each queue, the dead letters, and the alarms that ring, until Ctrl-C.

    The column of changes compares with the first reading. Numbers come from SQS, which approximates them.
    Ages and alarms come from CloudWatch, some minutes late. --json prints one object a line. Exit code 2: the
    stage does not exist, or has no such channel.

    Example: mailroom watch --channel mail --stage prod
    """
    with aws_faults(stage):
        snapshots = _snapshots(Watcher(aws_session(), stage, channel), interval, once=once)
        try:
            if as_json:
                for each in snapshots:
                    print_json(each)
            elif once or not screen.is_terminal:
                for each in snapshots:
                    screen.print(_shown(each))
            else:
                with Live(console=screen, auto_refresh=False, vertical_overflow="visible") as live:
                    for each in snapshots:
                        live.update(_shown(each), refresh=True)
        except KeyboardInterrupt:
            return


class Watcher:
    """Looks at one stage again and again. `channel`: only its queues."""

    def __init__(self, session: "boto3.Session", stage: str, channel: str | None = None) -> None:
        self._sqs = session.client("sqs")
        self._cloudwatch = session.client("cloudwatch")
        self._stage = stage
        self._prefix = stages.prefix(stage)
        self._channel = channel
        self._first: dict[str, int] = {}

    def look(self, now: float) -> Snapshot:
        """What there is, at `now` (epoch seconds). Raises NotDeployed if the stage has no queue, Refused
        if the channel has no queue, and botocore's errors if SQS cannot be asked."""
        urls = self._urls()
        with ThreadPoolExecutor(_WORKERS, thread_name_prefix="depth") as pool:
            read = pool.map(partial(stages.depth, self._sqs), urls.values())
            depths = dict(zip(urls, read, strict=True))
        ages, alarms, note = self._cloud(list(urls), now)
        queues = []
        for name in sorted(urls, key=_order):
            depth = depths[name]
            change = depth.all - self._first.setdefault(name, depth.all)
            age = ages.get(name)
            queues.append(QueueSnapshot(name, depth.visible, depth.in_flight, depth.delayed, age, change))
        waiting = sum(each.holds for each in queues if not stages.is_dead(each.name))
        dead = sum(each.holds for each in queues if stages.is_dead(each.name))
        return Snapshot(iso(now), self._stage, queues, waiting, dead, alarms, note)

    def _urls(self) -> dict[str, str]:
        named = stages.queue_urls(self._sqs, self._stage)
        if not named:
            raise NotDeployed(f"queue of {self._stage}")
        wanted = {name: url for name, url in named.items() if self._wanted(name)}
        if not wanted:
            alive = sorted(each.removesuffix(".fifo") for each in named if not stages.is_dead(each))
            there = ", ".join(alive)
            raise Refused(f"{self._stage} has no queue of {self._channel!r:.60}; there are: {there}.")
        return wanted

    def _wanted(self, name: str) -> bool:
        """Whether a queue is the channel's: its own, its lanes', its retries', or a dead-letter queue of
        these."""
        base = name.removesuffix(".fifo")
        return self._channel is None or base == self._channel or base.startswith(f"{self._channel}-")

    def _cloud(self, names: list[str], now: float) -> tuple[dict[str, float], list[RingingAlarm] | None, str]:
        """What CloudWatch says. Without it the queues are worth a look all the same."""
        try:
            return self._ages(names, now), self._alarms(), ""
        except (ClientError, BotoCoreError) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
            return {}, None, f"CloudWatch cannot be asked ({code}): no ages, no alarms."

    def _ages(self, names: list[str], now: float) -> dict[str, float]:
        end = datetime.fromtimestamp(now, UTC)
        answer = self._cloudwatch.get_metric_data(
            MetricDataQueries=[_query(at, self._prefix + name) for at, name in enumerate(names)],
            StartTime=end - timedelta(minutes=_AGE_MINUTES),
            EndTime=end,
            ScanBy="TimestampDescending",
        )
        found = {each["Id"]: each["Values"] for each in answer["MetricDataResults"]}
        return {name: found[f"q{at}"][0] for at, name in enumerate(names) if found.get(f"q{at}")}

    def _alarms(self) -> list[RingingAlarm]:
        pages = self._cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=self._prefix, StateValue="ALARM", AlarmTypes=["MetricAlarm", "CompositeAlarm"]
        )
        found: list[Any] = []
        for page in pages:
            found += [*page.get("MetricAlarms", []), *page.get("CompositeAlarms", [])]
        alarms = [
            RingingAlarm(each["AlarmName"], iso(each["StateUpdatedTimestamp"].timestamp()))
            for each in found
            if each["StateValue"] == "ALARM"  # not every emulator heeds both conditions at once
        ]
        return sorted(alarms, key=lambda each: each.name)


def _snapshots(
    watcher: Watcher,
    interval: float,
    *,
    once: bool,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Snapshot]:
    while True:
        began = clock()
        yield watcher.look(began)
        if once:
            return
        sleep(max(0.0, interval - (clock() - began)))


def _order(name: str) -> tuple[str, bool]:
    """A dead-letter queue behind its own."""
    return name.removesuffix(".fifo").removesuffix("-dlq"), stages.is_dead(name)


def _query(at: int, queue: str) -> Any:
    dimensions = [{"Name": "QueueName", "Value": queue}]
    metric = {"Namespace": "AWS/SQS", "MetricName": _AGE, "Dimensions": dimensions}
    return {"Id": f"q{at}", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Maximum"}}


def _shown(snapshot: Snapshot) -> RenderableType:
    waiting = f"{snapshot.waiting:,} on their way, {snapshot.dead:,} dead letters."
    summary = f"{snapshot.stage}, {short(snapshot.at)}: {waiting}"
    alarms = [
        Text.assemble(("ALARM ", "red"), plain(f"{each.name} since {short(each.since)}"))
        for each in snapshot.alarms or ()
    ]
    said = Text("No alarm rings.") if snapshot.alarms == [] else plain(snapshot.note)
    heading = Text(summary, style="bold red" if snapshot.dead else "bold")
    return Group(heading, _table(snapshot.queues), *(alarms or [said]))


def _table(queues: list[QueueSnapshot]) -> Table:
    table = table_of("queue", *map(right, ("visible", "in flight", "delayed", "oldest", "change")))
    for each in queues:
        age = "" if each.oldest_seconds is None else duration(each.oldest_seconds)
        figures = (
            f"{number:,}" if number else "·" for number in (each.visible, each.in_flight, each.delayed)
        )
        change = f"{each.change:+,}" if each.change else ""
        style = "red" if stages.is_dead(each.name) and each.holds else "dim" if not each.holds else ""
        table.add_row(plain(each.name), *figures, age, change, style=style)
    return table
