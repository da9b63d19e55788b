"""Evaluates alarms on dead letters and on metrics that functions log, so that operators can practise with
the alarms' pages in docs.
The emulator lacks the metrics of other alarms, and does not distinguish metrics that differ only in their
dimensions."""

from typing import TYPE_CHECKING

from mailroom.clock import iso
from mailroom_local.aws import ACCOUNT
from mailroom_ops.shared.deployed_stage import depth

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_cloudwatch.literals import StateValueType
    from types_boto3_cloudwatch.type_defs import MetricAlarmTypeDef
    from types_boto3_sqs import SQSClient

DEAD_LETTERS = "ApproximateNumberOfMessagesVisible"
"""Metric of alarms on dead-letter queues; no other alarms use it."""
LOGGED = "Mailroom"
"""Namespace of the metrics that functions log."""


def evaluate(cloudwatch: "CloudWatchClient", sqs: "SQSClient", moment: float) -> None:
    """Set the state of each supported alarm at `moment` (epoch seconds). The emulator notifies the topics of
    an alarm whose state changes."""
    pages = cloudwatch.get_paginator("describe_alarms").paginate()
    for alarm in (alarm for page in pages for alarm in page["MetricAlarms"]):
        periods = alarm["EvaluationPeriods"]
        if alarm["MetricName"] == DEAD_LETTERS:
            queue = f"{sqs.meta.endpoint_url}/{ACCOUNT}/{alarm['Dimensions'][0]['Value']}"
            values: list[float] = [depth(sqs, queue).all]
        elif alarm["Namespace"] == LOGGED:
            values = _logged(cloudwatch, alarm, moment)
        else:
            continue
        breaching = sum(value >= alarm["Threshold"] for value in values)
        if alarm["TreatMissingData"] == "breaching":
            breaching += periods - len(values)
        state: StateValueType = "ALARM" if breaching >= alarm.get("DatapointsToAlarm", periods) else "OK"
        if state != alarm["StateValue"]:
            reason = f"The values are {values}."
            cloudwatch.set_alarm_state(AlarmName=alarm["AlarmName"], StateValue=state, StateReason=reason)


def _logged(cloudwatch: "CloudWatchClient", alarm: "MetricAlarmTypeDef", moment: float) -> list[float]:
    """Return the values of the metric in the alarm's evaluation periods, without periods that lack data."""
    period, statistic = alarm["Period"], alarm["Statistic"]
    first = moment - moment % period - (alarm["EvaluationPeriods"] - 1) * period
    points = cloudwatch.get_metric_statistics(
        Namespace=LOGGED,
        MetricName=alarm["MetricName"],
        Dimensions=alarm["Dimensions"],
        StartTime=iso(first),
        EndTime=iso(moment),
        Period=period,
        Statistics=[statistic],
    )["Datapoints"]
    return [point[statistic] for point in points]
