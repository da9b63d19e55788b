"""Alarms of a local stage, in the real emulator's CloudWatch."""

import re
from typing import Any

import pytest

from mailroom_local.aws import LocalSession, patient
from mailroom_local.pump.alarms import evaluate, state_of

NOW = 4_102_488_030.0
"""2100-01-01T12:00:30Z: the emulator forgets values that are two weeks old by its own clock."""
LETTERS = {
    "Namespace": "AWS/SQS",
    "MetricName": "ApproximateNumberOfMessagesVisible",
    "Dimensions": [{"Name": "QueueName", "Value": "mail-dlq"}],
    "Period": 60,
}


def client(url: str, service: str) -> Any:
    return LocalSession().client(service, endpoint_url=url, config=patient())  # type: ignore[call-overload]


def logged(service: str, **changes: Any) -> dict[str, Any]:
    usual = {
        "Namespace": "Mailroom",
        "MetricName": "Late",
        "Dimensions": [{"Name": "service", "Value": service}],
        "Period": 60,
        "EvaluationPeriods": 3,
        "TreatMissingData": "notBreaching",
    }
    return {**usual, **changes}


def put_alarm(url: str, name: str, **options: Any) -> None:
    usual = {"EvaluationPeriods": 1, "Statistic": "Sum", "Threshold": 5.0, "TreatMissingData": "ignore"}
    how = "GreaterThanOrEqualToThreshold"
    client(url, "cloudwatch").put_metric_alarm(
        **{"AlarmName": name, "ComparisonOperator": how, **usual, **options}
    )


def put_values(url: str, service: str, **by_minutes_ago: float) -> None:
    """Put values of the metric Late, by how many minutes ago a function logged them: m0 is this minute."""
    data = [
        {
            "MetricName": "Late",
            "Dimensions": [{"Name": "service", "Value": service}],
            "Timestamp": NOW - NOW % 60 - 60 * int(minutes[1:]),
            "Value": value,
        }
        for minutes, value in by_minutes_ago.items()
    ]
    client(url, "cloudwatch").put_metric_data(Namespace="Mailroom", MetricData=data)


def evaluated_state(url: str, name: str) -> str:
    cloudwatch = client(url, "cloudwatch")
    evaluate(cloudwatch, client(url, "sqs"), NOW)
    (found,) = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return str(found["StateValue"])


def test_an_alarm_on_dead_letters_rings_as_long_as_the_queue_has_a_letter_visible_or_in_flight(
    url: str,
) -> None:
    sqs = client(url, "sqs")
    queue = sqs.create_queue(QueueName="mail-dlq")["QueueUrl"]
    put_alarm(url, "letters", **LETTERS, Threshold=1.0)
    assert evaluated_state(url, "letters") == "OK"
    sqs.send_message(QueueUrl=queue, MessageBody="{}")
    assert evaluated_state(url, "letters") == "ALARM"
    (read,) = sqs.receive_message(QueueUrl=queue)["Messages"]
    assert evaluated_state(url, "letters") == "ALARM"
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=read["ReceiptHandle"])
    assert evaluated_state(url, "letters") == "OK"


def test_an_alarm_on_a_logged_metric_counts_only_its_own_dimensions(url: str) -> None:
    put_alarm(url, "of-another", **logged("other", DatapointsToAlarm=1))
    put_alarm(url, "logged", **logged("send-mail", DatapointsToAlarm=1))
    put_values(url, "send-mail", m2=5)
    assert (evaluated_state(url, "logged"), evaluated_state(url, "of-another")) == ("ALARM", "OK")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"m0": 5, "m1": 5, "m2": 5}, "ALARM"),
        ({"m0": 5, "m1": 4, "m2": 5}, "OK"),
        ({"m1": 5, "m2": 5, "m3": 5}, "OK"),
    ],
)
def test_an_alarm_rings_only_if_the_metric_reaches_the_threshold_in_each_of_the_alarms_periods(
    url: str, values: dict[str, float], expected: str
) -> None:
    service = f"all-{'-'.join(values)}-{sum(values.values())}"
    put_alarm(url, service, **logged(service))
    put_values(url, service, **values)
    assert evaluated_state(url, service) == expected


def test_an_alarm_that_counts_missing_data_as_breaching_rings_until_a_new_value_arrives(url: str) -> None:
    put_alarm(url, "rounds", **logged("release", TreatMissingData="breaching"))
    put_values(url, "release", m3=1)
    assert evaluated_state(url, "rounds") == "ALARM"
    put_values(url, "release", m0=1)
    assert evaluated_state(url, "rounds") == "OK"


def test_an_alarm_on_a_metric_that_the_emulator_lacks_has_insufficient_data(url: str) -> None:
    put_alarm(url, "slow", Namespace="AWS/Lambda", MetricName="Duration", Dimensions=[], Period=60)
    assert evaluated_state(url, "slow") == "INSUFFICIENT_DATA"


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        ("SUM([a, b])", {"a": 3, "b": 2}, "ALARM"),
        ("SUM([a, b])", {"a": 5}, "ALARM"),
        ("SUM([a, b])", {}, "OK"),
        ("a + b", {"a": 3, "b": 2}, "ALARM"),
        ("a + b", {"a": 5}, "OK"),
        ("IF(a > b, 5 * b, 0)", {"a": 3, "b": 2}, "ALARM"),
        ("IF(a > b, 5 * b, 0)", {"a": 2, "b": 2}, "OK"),
        ("IF(a >= b, 5, 0)", {"a": 2, "b": 2}, "ALARM"),
        ("IF(a > b, 5, 0)", {"b": 2}, "OK"),
        ("5 / a", {"a": 1}, "ALARM"),
        ("5 / a", {"a": 0}, "OK"),
    ],
)
def test_a_metric_expression_of_an_alarm_is_evaluated_as_in_cloudwatch(
    expression: str, values: dict[str, float], expected: str
) -> None:
    assert state_of(on_expression(expression), lambda query, _: values.get(query["Stat"]), NOW) == expected


def test_an_alarm_with_an_unsupported_metric_expression_raises_an_error() -> None:
    with pytest.raises(ValueError, match=re.escape("cannot be evaluated: RATE(a)")):
        state_of(on_expression("RATE(a)"), lambda _query, _end: 1.0, NOW)


def on_expression(expression: str) -> dict[str, Any]:
    """An alarm that rings from 5 on, with the metrics a and b, which have their names as statistics."""
    metrics = [{"Id": name, "MetricStat": {"Metric": {}, "Period": 60, "Stat": name}} for name in "ab"]
    return {
        "Metrics": [*metrics, {"Id": "e", "Expression": expression}],
        "EvaluationPeriods": 1,
        "Threshold": 5,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "TreatMissingData": "notBreaching",
    }
