"""Alarms of the latency objective, of what AWS drops, and AWS's own events about its services."""

from typing import Any

import pytest

from tests.support.stacks.alarm import alarm_named, alarms
from tests.support.stacks.dashboard import widgets
from tests.support.stacks.templates import Templates, text_of


def test_two_alarms_compare_the_p99_of_each_normal_lane_with_the_latency_objective(
    whole: Templates,
) -> None:
    late = {each.name: each.properties for each in alarms(whole) if "codes-late" in each.name}
    windows = {
        name.removeprefix("mailroom-dev-"): (rings["DatapointsToAlarm"], rings["EvaluationPeriods"])
        for name, rings in late.items()
    }
    assert windows == {
        f"{queue}-codes-late{end}": window
        for queue in ("mail", "sms")
        for end, window in (("", (3, 3)), ("-warning", (12, 72)))
    }
    for rings in late.values():
        assert (rings["MetricName"], rings["ExtendedStatistic"]) == ("PutToAccepted", "p99")
        assert (rings["Threshold"], rings["Period"]) == (5_000, 300)


def test_the_graph_of_slow_messages_has_a_line_at_the_threshold_of_the_latency_alarm(
    whole: Templates,
) -> None:
    (codes,) = (each for each in widgets(whole, "metric") if "Codes" in each["properties"]["title"])
    (line,) = codes["properties"]["annotations"]["horizontal"]
    assert line["value"] == alarm_named(whole, "mailroom-dev-mail-codes-late")["Threshold"]


@pytest.mark.parametrize("name", ["dev", "prod", "whole"])
def test_one_alarm_covers_each_metric_of_silent_drops_by_aws(
    name: str, request: pytest.FixtureRequest
) -> None:
    stage: Templates = request.getfixturevalue(name)
    (drops,) = (each for each in alarms(stage) if each.name.endswith("-aws-drops"))
    prefix = drops.name.removesuffix("aws-drops")
    rules = {rule["Name"] for of in stage.stacks.values() for rule in of.all("Events::Rule")}
    assert drops.metrics() == {
        ("AWS/Lambda", "RecursiveInvocationsDropped", ()),
        *(("AWS/Events", "FailedInvocations", (("RuleName", rule),)) for rule in rules),
        ("AWS/SNS", "NumberOfNotificationsFailed", (("TopicName", f"{prefix}feedback"),)),
        ("AWS/SNS", "NumberOfNotificationsFailed", (("TopicName", f"{prefix}alarms"),)),
    }
    (total,) = (each for each in drops.properties["Metrics"] if "Expression" in each)
    # A sum by `+` is without a value if one of its metrics is.
    assert total["Expression"].startswith("SUM([loops, ")
    assert (drops.properties["Threshold"], drops.properties["EvaluationPeriods"]) == (1, 1)


def test_events_of_aws_health_for_the_stages_services_go_to_the_alarms_topic(dev: Templates) -> None:
    rule = dev["monitoring"].one("Events::Rule", Name="mailroom-dev-health")
    assert rule["EventPattern"]["source"] == ["aws.health"]
    assert {"DYNAMODB", "LAMBDA", "SES", "SNS", "SQS"} < {*rule["EventPattern"]["detail"]["service"]}
    (target,) = rule["Targets"]
    topic = dev["monitoring"].body["Resources"][target["Arn"]["Ref"]]["Properties"]["TopicName"]
    assert topic == "mailroom-dev-alarms"
    allowed = [statement for statement in publishers(dev) if statement["Service"] == "events.amazonaws.com"]
    assert [statement["source"] for statement in allowed] == [
        "arn:aws:events:eu-central-1:111122223333:rule/mailroom-dev-health"
    ]


def publishers(stage: Templates) -> list[dict[str, Any]]:
    """The services that may publish to a topic of the alarms, each with the source that it has to name."""
    return [
        {**each["Principal"], "source": text_of(each["Condition"]["ArnEquals"]["aws:SourceArn"])}
        for policy in stage["monitoring"].all("SNS::TopicPolicy")
        for each in policy["PolicyDocument"]["Statement"]
        if each["Effect"] == "Allow"
    ]
