"""What a stage's queues hold, the dead letters among it, and the alarms that ring."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.clock import iso
from mailroom_ops.shared import deployed_stage as stages
from mailroom_ops.shared.screen import NotDeployed

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_sqs import SQSClient

_WORKERS = 8


class QueueSnapshot(Struct, frozen=True):
    """A queue of the stage."""

    name: str
    """The queue's name without the stage's."""
    depth: stages.Depth


class RingingAlarm(Struct, frozen=True):
    """Alarm that rings."""

    name: str
    since: str
    """Time when the alarm began (ISO 8601)."""
    description: str
    """What the alarm means, what comes next, and the alarm's page."""


class Snapshot(Struct, frozen=True):
    """Queues and alarms of a stage. `alarms` None: CloudWatch could not be asked, and `note` says why."""

    queues: list[QueueSnapshot]
    dead: int
    alarms: list[RingingAlarm] | None
    note: str


def look(sqs: "SQSClient", cloudwatch: "CloudWatchClient", stage: str) -> Snapshot:
    """Return what there is now. Raises NotDeployed if the stage has no queue, and botocore's errors if SQS
    cannot be asked."""
    urls = stages.queue_urls(sqs, stage)
    if not urls:
        raise NotDeployed(f"queue of {stage}")
    with ThreadPoolExecutor(_WORKERS, thread_name_prefix="depth") as pool:
        read = pool.map(partial(stages.depth, sqs), urls.values())
        depths = dict(zip(urls, read, strict=True))
    alarms, note = _alarms(cloudwatch, stage)
    queues = [QueueSnapshot(name, depths[name]) for name in sorted(urls, key=_order)]
    dead = sum(queue.depth.all for queue in queues if stages.is_dead(queue.name))
    return Snapshot(queues, dead, alarms, note)


def _alarms(cloudwatch: "CloudWatchClient", stage: str) -> tuple[list[RingingAlarm] | None, str]:
    """Return the alarms that ring. Without CloudWatch the queues are worth a look all the same."""
    found: list[Any] = []
    try:
        pages = cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=stages.prefix(stage),
            StateValue="ALARM",
            AlarmTypes=["MetricAlarm", "CompositeAlarm"],
        )
        for page in pages:
            found += [*page.get("MetricAlarms", []), *page.get("CompositeAlarms", [])]
    except (ClientError, BotoCoreError) as error:
        code = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
        return None, f"CloudWatch cannot be asked ({code}): no figures, no alarms."
    alarms = [
        RingingAlarm(
            each["AlarmName"],
            iso(each["StateUpdatedTimestamp"].timestamp()),
            each.get("AlarmDescription", ""),
        )
        for each in found
        if each["StateValue"] == "ALARM"  # not every emulator heeds both conditions at once
    ]
    return sorted(alarms, key=lambda each: each.name), ""


def _order(name: str) -> tuple[str, bool]:
    """A dead-letter queue behind its own."""
    return name.removesuffix(".fifo").removesuffix("-dlq"), stages.is_dead(name)
