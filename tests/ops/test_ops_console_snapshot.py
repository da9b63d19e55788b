"""A snapshot of a stage's queues, dead letters and alarms, as the console's overview shows it."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from mailroom_ops.console.snapshot import Snapshot
from mailroom_ops.console.snapshot import look as look_at
from mailroom_ops.shared.deployed_stage import queue_urls
from tests.support.ops.message import Stage
from tests.support.ops.shared import REGION

QUEUES = ("mail", "mail-dlq", "mail-bulk", "mail-bulk-dlq", "webhook", "webhook-dlq")


@pytest.fixture
def stage(stage: Stage) -> Stage:
    for short in QUEUES:
        stage.sqs.create_queue(QueueName=f"mailroom-dev-{short}")
    for short in ("fax.fifo", "fax-dlq.fifo"):
        stage.sqs.create_queue(QueueName=f"mailroom-dev-{short}", Attributes={"FifoQueue": "true"})
    stage.sqs.create_queue(QueueName="mailroom-dev2-mail")
    return stage


def look_at_stage(stage: Stage) -> Snapshot:
    sqs = stage.session.client("sqs")
    return look_at(sqs, stage.session.client("cloudwatch"), "dev", queue_urls(sqs, "dev"))


def queue_url(stage: Stage, short: str) -> str:
    return stage.sqs.get_queue_url(QueueName=f"mailroom-dev-{short}")["QueueUrl"]


def queue_messages(stage: Stage, short: str, count: int = 1, delay: int = 0) -> None:
    for _ in range(count):
        stage.sqs.send_message(QueueUrl=queue_url(stage, short), MessageBody="{}", DelaySeconds=delay)


def put_alarm_in(name: str, state: Any) -> None:
    cloudwatch = boto3.client("cloudwatch", region_name=REGION)
    cloudwatch.put_metric_alarm(
        AlarmName=name,
        Namespace="AWS/SQS",
        MetricName="m",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
    )
    cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="a test")


def test_a_snapshot_counts_the_messages_in_each_queue_of_the_stage(stage: Stage) -> None:
    queue_messages(stage, "mail", 3)
    queue_messages(stage, "mail", 1, delay=60)
    queue_messages(stage, "webhook-dlq", 2)
    stage.sqs.receive_message(QueueUrl=queue_url(stage, "mail"), MaxNumberOfMessages=1)
    found = look_at_stage(stage)
    queues = {each.name: each for each in found.queues}
    assert list(queues) == [
        *("fax.fifo", "fax-dlq.fifo", "mail", "mail-dlq", "mail-bulk", "mail-bulk-dlq"),
        *("webhook", "webhook-dlq"),
    ]
    mail = queues["mail"]
    assert (mail.depth.visible, mail.depth.in_flight, mail.depth.delayed) == (2, 1, 1)
    assert found.dead == 2


def test_a_snapshot_names_only_the_ringing_alarms_of_its_stage(stage: Stage) -> None:
    put_alarm_in("mailroom-dev-mail-dlq-not-empty", "ALARM")
    put_alarm_in("mailroom-dev-mail-waiting-long", "OK")
    put_alarm_in("mailroom-dev2-mail-dlq-not-empty", "ALARM")
    assert [each.name for each in look_at_stage(stage).alarms or ()] == ["mailroom-dev-mail-dlq-not-empty"]


def test_a_snapshot_has_the_queues_and_a_note_if_cloudwatch_is_unreachable(stage: Stage) -> None:
    class Away:
        def get_paginator(self, _: str) -> Any:
            return self

        def paginate(self, **_: Any) -> Any:
            raise EndpointConnectionError(endpoint_url="https://monitoring.example")

    queue_messages(stage, "mail")
    stage.instead["cloudwatch"] = Away()
    found = look_at_stage(stage)
    assert (found.alarms, [each.depth.all for each in found.queues if each.name == "mail"]) == (None, [1])
    assert found.note == "CloudWatch cannot be read (EndpointConnectionError): no figures, no alarms."
