"""`mailroom watch`: queues, dead letters and alarms, look after look."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from ops.messages import watch
from tests.support.ops.message import Stage, answer, deployed, run
from tests.support.ops.shared import REGION

QUEUES = ("mail", "mail-dlq", "mail-bulk", "mail-bulk-dlq", "webhook", "webhook-dlq")
NOW = 1_795_269_634.0


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with deployed(monkeypatch) as stage:
        for short in QUEUES:
            stage.sqs.create_queue(QueueName=f"mailroom-dev-{short}")
        for short in ("fax.fifo", "fax-dlq.fifo"):
            stage.sqs.create_queue(QueueName=f"mailroom-dev-{short}", Attributes={"FifoQueue": "true"})
        stage.sqs.create_queue(QueueName="mailroom-dev2-mail")
        yield stage


def url(stage: Stage, short: str) -> str:
    return stage.sqs.get_queue_url(QueueName=f"mailroom-dev-{short}")["QueueUrl"]


def waiting(stage: Stage, short: str, count: int = 1, delay: int = 0) -> None:
    for _ in range(count):
        stage.sqs.send_message(QueueUrl=url(stage, short), MessageBody="{}", DelaySeconds=delay)


def alarm(name: str, state: Any) -> None:
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


def test_one_look_counts_what_each_queue_of_the_stage_holds(stage: Stage) -> None:
    waiting(stage, "mail", 3)
    waiting(stage, "mail", 1, delay=60)
    waiting(stage, "webhook-dlq", 2)
    stage.sqs.receive_message(QueueUrl=url(stage, "mail"), MaxNumberOfMessages=1)
    look = answer(run("watch", "--once", "--json"))
    queues = {each["name"]: each for each in look["queues"]}
    assert list(queues) == [
        *("fax.fifo", "fax-dlq.fifo", "mail", "mail-dlq", "mail-bulk", "mail-bulk-dlq"),
        *("webhook", "webhook-dlq"),
    ]
    held = {name: each["visible"] + each["in_flight"] + each["delayed"] for name, each in queues.items()}
    assert held == dict.fromkeys(queues, 0) | {"mail": 4, "webhook-dlq": 2}
    assert (queues["mail"]["in_flight"], queues["mail"]["delayed"]) == (1, 1)
    assert (look["waiting"], look["dead"]) == (4, 2)


def test_a_channel_is_its_queue_its_lanes_and_their_dead_letters(stage: Stage) -> None:
    look = answer(run("watch", "--once", "--json", "--channel", "mail"))
    assert [each["name"] for each in look["queues"]] == ["mail", "mail-dlq", "mail-bulk", "mail-bulk-dlq"]
    fax = answer(run("watch", "--once", "--json", "--channel", "fax"))
    assert [each["name"] for each in fax["queues"]] == ["fax.fifo", "fax-dlq.fifo"]


def test_the_alarms_that_ring_are_named_and_no_other_stages(stage: Stage) -> None:
    alarm("mailroom-dev-mail-dlq-not-empty", "ALARM")
    alarm("mailroom-dev-mail-backlog-old", "OK")
    alarm("mailroom-prod-mail-dlq-not-empty", "ALARM")
    look = answer(run("watch", "--once", "--json"))
    assert [each["name"] for each in look["alarms"]] == ["mailroom-dev-mail-dlq-not-empty"]
    assert "ALARM mailroom-dev-mail-dlq-not-empty" in run("watch", "--once").stdout


def test_where_cloudwatch_is_out_of_reach_the_queues_are_shown_and_that_is_said(stage: Stage) -> None:
    class Away:
        def get_metric_data(self, **_: Any) -> None:
            raise EndpointConnectionError(endpoint_url="https://monitoring.example")

    stage.instead["cloudwatch"] = Away()
    waiting(stage, "mail")
    look = answer(run("watch", "--once", "--json"))
    assert (look["alarms"], look["waiting"]) == (None, 1)
    shown = run("watch", "--once")
    assert shown.exit_code == 0
    assert "CloudWatch cannot be asked (EndpointConnectionError): no ages, no alarms." in shown.stdout


def test_the_age_of_the_oldest_is_the_newest_that_cloudwatch_has(stage: Stage) -> None:
    class Cloud:
        def get_metric_data(self, *, MetricDataQueries: Any, **_: Any) -> Any:  # noqa: N803 - boto3's names
            names = {
                each["Id"]: each["MetricStat"]["Metric"]["Dimensions"][0]["Value"]
                for each in MetricDataQueries
            }
            mail = next(id_ for id_, name in names.items() if name == "mailroom-dev-mail")
            return {"MetricDataResults": [{"Id": mail, "Values": [7200.0, 60.0]}]}

        def get_paginator(self, _: str) -> Any:
            return self

        def paginate(self, **_: Any) -> list[Any]:
            return [{}]

    stage.instead["cloudwatch"] = Cloud()
    look = answer(run("watch", "--once", "--json"))
    ages = {each["name"]: each["oldest_seconds"] for each in look["queues"]}
    assert (ages["mail"], ages["webhook"]) == (7200.0, None)
    assert "2 hours" in run("watch", "--once").stdout


def test_the_change_is_since_the_first_look(stage: Stage) -> None:
    waiting(stage, "mail", 2)
    looking = watch.Watcher(boto3.Session(), "dev", "mail")
    changes = [{each.name: each.change for each in looking.look(NOW).queues}["mail"]]
    waiting(stage, "mail", 3)
    changes.append({each.name: each.change for each in looking.look(NOW).queues}["mail"])
    assert changes == [0, 3]


def test_json_is_one_object_a_line_until_somebody_ends_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        waiting(stage, "mail")
        if len(slept) == 3:
            raise KeyboardInterrupt

    looks = watch._snapshots
    monkeypatch.setattr(
        watch,
        "_snapshots",
        lambda *given, **named: looks(*given, **named, clock=lambda: NOW, sleep=sleep),
    )
    result = run("watch", "--json", "--interval", "7")
    assert result.exit_code == 0
    assert [json.loads(line)["waiting"] for line in result.stdout.splitlines()] == [0, 1, 2]
    assert slept == [7.0] * 3


def test_without_a_terminal_each_look_is_printed_plainly(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = watch._snapshots

    def twice(*given: Any, **named: Any) -> Iterator[Any]:
        return (each for each, _ in zip(looks(*given, **named, sleep=lambda _: None), range(2), strict=False))

    monkeypatch.setattr(watch, "_snapshots", twice)
    shown = run("watch").stdout
    assert shown.count("0 on their way, 0 dead letters.") == 2
    assert "\x1b" not in shown


@pytest.mark.parametrize("words", [(), ("--json",), ("--channel", "mail")])
def test_a_stage_that_is_not_there_is_refused_on_the_first_look(stage: Stage, words: tuple[str, ...]) -> None:
    result = run("watch", "--once", "--stage", "typo", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "There is no queue of typo in this account and region. Deploy the stage, or check" in result.stderr


def test_a_channel_without_queues_is_refused_and_those_that_there_are_are_named(stage: Stage) -> None:
    result = run("watch", "--once", "--channel", "mial")
    assert result.exit_code == 2
    assert "dev has no queue of 'mial'; there are: fax, mail, mail-bulk, webhook." in result.stderr
