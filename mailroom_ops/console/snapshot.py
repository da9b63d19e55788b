"""Snapshot of a stage: the depths of its queues, the number of its dead letters, and the ringing alarms."""

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.clock import iso
from mailroom_ops.shared import deployed_stage as stages

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_sqs import SQSClient

_WORKERS = 8
_SENTENCE, _NAME = re.compile(r"(?<=\.) "), "([a-z0-9-]+)"
_PAGE = re.compile(f"`mailroom docs {_NAME}`")


class QueueSnapshot(Struct, frozen=True):
    """Queue of the stage, with its depth."""

    name: str
    """Name of the queue without the stage."""
    depth: stages.Depth


class RingingAlarm(Struct, frozen=True):
    """Alarm in the state ALARM."""

    name: str
    since: str
    """Time when the alarm began (ISO 8601)."""
    description: str
    """Description of the alarm: its meaning, the next step, and the alarm's page."""

    @property
    def sentence(self) -> str:
        """First sentence of the description."""
        return _SENTENCE.split(self.description)[0]

    @property
    def page(self) -> str:
        """Name of the alarm's page in the documentation; empty for an alarm without one."""
        page = _PAGE.search(self.description)
        return page[1] if page else ""


class Snapshot(Struct, frozen=True):
    """Queues and alarms of a stage. If CloudWatch does not answer, `alarms` is None, and `note` is the
    reason."""

    queues: list[QueueSnapshot]
    dead: int
    alarms: list[RingingAlarm] | None
    note: str


def look(sqs: "SQSClient", cloudwatch: "CloudWatchClient", stage: str, urls: Mapping[str, str]) -> Snapshot:
    """Return the current snapshot of the queues with these URLs, by short name. Raises botocore's errors if
    SQS does not answer."""
    with ThreadPoolExecutor(_WORKERS, thread_name_prefix="depth") as pool:
        read = pool.map(partial(stages.depth, sqs), urls.values())
        depths = dict(zip(urls, read, strict=True))
    alarms, note = _alarms(cloudwatch, stage)
    queues = [QueueSnapshot(name, depths[name]) for name in sorted(urls, key=_order)]
    dead = sum(queue.depth.all for queue in queues if stages.is_dead(queue.name))
    return Snapshot(queues, dead, alarms, note)


def _alarms(cloudwatch: "CloudWatchClient", stage: str) -> tuple[list[RingingAlarm] | None, str]:
    """Return the alarms that ring, or None and the reason if CloudWatch does not answer."""
    descriptions: list[Any] = []
    try:
        pages = cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=stages.prefix(stage),
            StateValue="ALARM",
            AlarmTypes=["MetricAlarm", "CompositeAlarm"],
        )
        for page in pages:
            descriptions += [*page.get("MetricAlarms", []), *page.get("CompositeAlarms", [])]
    except (ClientError, BotoCoreError) as error:
        code = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
        return None, f"CloudWatch cannot be read ({code}): no figures, no alarms."
    alarms = [
        RingingAlarm(
            alarm["AlarmName"],
            iso(alarm["StateUpdatedTimestamp"].timestamp()),
            alarm.get("AlarmDescription", ""),
        )
        for alarm in descriptions
        if alarm["StateValue"] == "ALARM"  # some emulators ignore the prefix or StateValue
    ]
    return sorted(alarms, key=lambda alarm: alarm.name), ""


def _order(name: str) -> tuple[str, bool]:
    """Return the sort key of a queue's name. A dead-letter queue is sorted directly after its queue."""
    return name.removesuffix(".fifo").removesuffix("-dlq"), stages.is_dead(name)
