"""One look at a stage: its queues, its dead-letter queues and the alarms that ring."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.clock import iso
from ops import stage as stages
from ops.screen import NotDeployed, Refused

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_sqs import SQSClient

_WORKERS = 8
_AGE = "ApproximateAgeOfOldestMessage"
_AGE_MINUTES = 10
"""SQS tells its metrics each minute, some minutes late."""
_MAX_METRICS = 500
"""Of one GetMetricData call."""


class Queue(Struct, frozen=True):
    """One queue by its short name. `oldest_seconds` is how long the oldest message waits, as CloudWatch has
    it; null: it does not say. `change` is how many more it holds than at the first look."""

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

    @property
    def is_dead(self) -> bool:
        """Whether it is a dead-letter queue."""
        return is_dead(self.name)


class Alarm(Struct, frozen=True):
    """One alarm that rings: its name, and since when (ISO 8601)."""

    name: str
    since: str


class Look(Struct, frozen=True):
    """The answer of `watch`. `alarms` null: CloudWatch could not be asked, and `note` says why."""

    at: str
    stage: str
    queues: list[Queue]
    waiting: int
    dead: int
    alarms: list[Alarm] | None
    note: str


class Looking:
    """Looks at one stage again and again. `channel`: its queues alone."""

    def __init__(self, session: boto3.Session, stage: str, channel: str | None = None) -> None:
        self._sqs: SQSClient = session.client("sqs")
        self._cloudwatch: CloudWatchClient = session.client("cloudwatch")
        self._stage = stage
        self._prefix = stages.prefix(stage)
        self._channel = channel
        self._first: dict[str, int] = {}

    def look(self, now: float) -> Look:
        """What there is, at `now` (epoch seconds). Raises NotDeployed where the stage has no queue, Refused
        where the channel has none, and botocore's errors where SQS cannot be asked."""
        urls = self._urls()
        with ThreadPoolExecutor(_WORKERS, thread_name_prefix="depth") as pool:
            depths = dict(zip(urls, pool.map(self._depth, urls.values()), strict=True))
        ages, alarms, note = self._cloud(list(urls), now)
        queues = [self._queue(name, depths[name], ages.get(name)) for name in sorted(urls, key=_order)]
        return Look(
            iso(now),
            self._stage,
            queues,
            sum(each.holds for each in queues if not each.is_dead),
            sum(each.holds for each in queues if each.is_dead),
            alarms,
            note,
        )

    def _urls(self) -> dict[str, str]:
        pages = self._sqs.get_paginator("list_queues").paginate(QueueNamePrefix=self._prefix)
        urls = (url for page in pages for url in page.get("QueueUrls", []))
        named = {url.rpartition("/")[2].removeprefix(self._prefix): url for url in urls}
        if not named:
            raise NotDeployed(f"queue of {self._stage}")
        wanted = {name: url for name, url in named.items() if self._wanted(name)}
        if not wanted:
            there = ", ".join(sorted(name.removesuffix(".fifo") for name in named if not is_dead(name)))
            raise Refused(f"{self._stage} has no queue of {self._channel!r:.60}; there are: {there}.")
        return wanted

    def _wanted(self, name: str) -> bool:
        """Of a channel: its queue, its lanes', its retries', and the dead-letter queues of all of them."""
        base = name.removesuffix(".fifo")
        return self._channel is None or base == self._channel or base.startswith(f"{self._channel}-")

    def _depth(self, url: str) -> stages.Depth:
        return stages.depth(self._sqs, url)

    def _queue(self, name: str, depth: stages.Depth, age: float | None) -> Queue:
        first = self._first.setdefault(name, depth.all)
        return Queue(name, depth.visible, depth.in_flight, depth.delayed, age, depth.all - first)

    def _cloud(self, names: list[str], now: float) -> tuple[dict[str, float], list[Alarm] | None, str]:
        """What CloudWatch says. Without it the queues are worth a look all the same."""
        try:
            return self._ages(names, now), self._alarms(), ""
        except (ClientError, BotoCoreError) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
            return {}, None, f"CloudWatch cannot be asked ({code}): no ages, no alarms."

    def _ages(self, names: list[str], now: float) -> dict[str, float]:
        end = datetime.fromtimestamp(now, UTC)
        queries: Any = [_query(at, self._prefix + name) for at, name in enumerate(names[:_MAX_METRICS])]
        if not queries:
            return {}
        answer = self._cloudwatch.get_metric_data(
            MetricDataQueries=queries,
            StartTime=end - timedelta(minutes=_AGE_MINUTES),
            EndTime=end,
            ScanBy="TimestampDescending",
        )
        found = {each["Id"]: each["Values"] for each in answer["MetricDataResults"]}
        return {name: found[f"q{at}"][0] for at, name in enumerate(names) if found.get(f"q{at}")}

    def _alarms(self) -> list[Alarm]:
        pages = self._cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=self._prefix, StateValue="ALARM", AlarmTypes=["MetricAlarm", "CompositeAlarm"]
        )
        found: list[Any] = []
        for page in pages:
            found += [*page.get("MetricAlarms", []), *page.get("CompositeAlarms", [])]
        # Not every emulator heeds both conditions at once.
        ringing = [each for each in found if each["StateValue"] == "ALARM"]
        return sorted(
            (Alarm(each["AlarmName"], iso(each["StateUpdatedTimestamp"].timestamp())) for each in ringing),
            key=lambda each: each.name,
        )


def is_dead(name: str) -> bool:
    """Whether a queue of that short name is a dead-letter queue."""
    return name.removesuffix(".fifo").endswith("-dlq")


def _order(name: str) -> tuple[str, bool]:
    """A dead-letter queue behind its own."""
    return name.removesuffix(".fifo").removesuffix("-dlq"), is_dead(name)


def _query(at: int, queue: str) -> dict[str, Any]:
    metric = {
        "Namespace": "AWS/SQS",
        "MetricName": _AGE,
        "Dimensions": [{"Name": "QueueName", "Value": queue}],
    }
    return {"Id": f"q{at}", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Maximum"}}
