"""Evaluates alarms on dead letters and on metrics that functions log, so that operators can practise with
the alarms' pages in docs. The emulator lacks the metrics of other alarms."""

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mailroom.clock import iso
from mailroom_local.aws import ACCOUNT
from mailroom_ops.shared.deployed_stage import depth

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_cloudwatch.literals import StateValueType
    from types_boto3_sqs import SQSClient

Value = float | None
"""Value of a metric or of an expression in a period; None if the period lacks data."""
Query = Mapping[str, Any]
"""Entry `MetricStat` of an alarm: a metric, with its statistic and its period in seconds."""
Minutes = Mapping[float, float]
"""Values of a metric by the beginning of their minute, in epoch seconds."""

DEAD_LETTERS = "ApproximateNumberOfMessagesVisible"
"""Metric of alarms on dead-letter queues. It counts all messages here."""
LOGGED = "Mailroom"
"""Namespace of the metrics that functions log."""
MINUTE = 60
_OPERATORS: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
}
_COMPARISONS = {"GreaterThanOrEqualToThreshold": operator.ge, "LessThanThreshold": operator.lt}


def evaluate(cloudwatch: "CloudWatchClient", sqs: "SQSClient", moment: float) -> None:
    """Set the state of each supported alarm at `moment` (epoch seconds). The emulator notifies the topics of
    an alarm whose state changes."""
    pages = cloudwatch.get_paginator("describe_alarms").paginate()
    alarms: list[Mapping[str, Any]] = [alarm for page in pages for alarm in page["MetricAlarms"]]
    supported = {alarm["AlarmName"]: alarm for alarm in alarms if all(map(_is_supported, _queries(alarm)))}
    logged = _logged(cloudwatch, supported.values(), moment)

    def read(query: Query, end: float) -> Value:
        metric = query["Metric"]
        if metric["Namespace"] == LOGGED:
            return value_in(logged[_key(query)], query, end)
        return depth(sqs, f"{sqs.meta.endpoint_url}/{ACCOUNT}/{metric['Dimensions'][0]['Value']}").all

    for name, alarm in supported.items():
        state = state_of(alarm, read, moment)
        if state != alarm["StateValue"]:
            reason = f"Evaluated at {iso(moment)}."
            cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason=reason)


def state_of(
    alarm: Mapping[str, Any], read: Callable[[Query, float], Value], moment: float
) -> "StateValueType":
    """Return the state of an alarm at `moment` (epoch seconds). `alarm` has the fields of DescribeAlarms, or
    the equal properties of a template. `read` returns the value of a metric in the period that ends at a
    time. As on AWS, the periods are not aligned to the clock: the last one ends with the present minute.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation-window.html, read on
    2026-11-29
    """
    number, queries = alarm["EvaluationPeriods"], _queries(alarm)
    period, end = queries[0]["Period"], moment - moment % MINUTE + MINUTE
    values = [_value(alarm, read, end - back * period) for back in range(number)]
    breaches = _COMPARISONS[alarm["ComparisonOperator"]]
    missing = alarm.get("TreatMissingData", "missing")
    if values.count(None) == number and missing in ("ignore", "missing"):
        state: StateValueType = alarm.get("StateValue", "INSUFFICIENT_DATA")
        return state
    breaching = sum(
        missing == "breaching" if value is None else breaches(value, alarm["Threshold"]) for value in values
    )
    return "ALARM" if breaching >= alarm.get("DatapointsToAlarm", number) else "OK"


def value_in(minutes: Minutes, query: Query, end: float) -> Value:
    """Return the value of a metric in the period that ends at `end` (epoch seconds), from its values by
    minute. The highest value of the minutes stands for a percentile."""
    values = [value for begin, value in minutes.items() if end - query["Period"] <= begin < end]
    if not values:
        return None
    return sum(values) if query["Stat"] == "Sum" else max(values)


def _queries(alarm: Mapping[str, Any]) -> list[Query]:
    """Return the metrics of an alarm, which has one metric, or several of them in an expression."""
    if metrics := alarm.get("Metrics"):
        return [entry["MetricStat"] for entry in metrics if "MetricStat" in entry]
    metric = {name: alarm.get(name, []) for name in ("Namespace", "MetricName", "Dimensions")}
    statistic = alarm.get("ExtendedStatistic") or alarm["Statistic"]
    return [{"Metric": metric, "Period": alarm["Period"], "Stat": statistic}]


def _is_supported(query: Query) -> bool:
    metric = query["Metric"]
    of_dead_letters = metric["MetricName"] == DEAD_LETTERS and "-dlq" in metric["Dimensions"][0]["Value"]
    return bool(metric["Namespace"] == LOGGED or of_dead_letters)


def _key(query: Query) -> tuple[Any, ...]:
    metric = query["Metric"]
    dimensions = sorted((entry["Name"], entry["Value"]) for entry in metric.get("Dimensions", []))
    return metric["MetricName"], query["Stat"], *dimensions


def _logged(
    cloudwatch: "CloudWatchClient", alarms: Iterable[Mapping[str, Any]], moment: float
) -> dict[tuple[Any, ...], Minutes]:
    """Read the logged metrics of alarms by minute, in one call."""
    entries = [
        (query, alarm["EvaluationPeriods"] * query["Period"])
        for alarm in alarms
        for query in _queries(alarm)
        if query["Metric"]["Namespace"] == LOGGED
    ]
    if not entries:
        return {}
    longest = max(seconds for _, seconds in entries)
    queries = {_key(query): query for query, _ in entries}
    keys = [*queries]
    by_minute: list[Any] = [
        {"Id": f"m{number}", "MetricStat": {**queries[key], "Period": MINUTE}}
        for number, key in enumerate(keys)
    ]
    results = cloudwatch.get_metric_data(
        MetricDataQueries=by_minute,
        StartTime=datetime.fromtimestamp(moment - longest, UTC),
        EndTime=datetime.fromtimestamp(moment + MINUTE, UTC),
    )["MetricDataResults"]
    return {
        keys[int(result["Id"][1:])]: {
            time.timestamp(): value
            for time, value in zip(result["Timestamps"], result["Values"], strict=True)
        }
        for result in results
    }


def _value(alarm: Mapping[str, Any], read: Callable[[Query, float], Value], end: float) -> Value:
    """Return the value of an alarm's metric or expression in the period that ends at `end`."""
    metrics = alarm.get("Metrics")
    if not metrics:
        return read(_queries(alarm)[0], end)
    values = {entry["Id"]: read(entry["MetricStat"], end) for entry in metrics if "MetricStat" in entry}
    (expression,) = (entry["Expression"] for entry in metrics if "Expression" in entry)
    return _result(ast.parse(expression, mode="eval").body, values)


def _result(node: ast.AST, values: Mapping[str, Value]) -> Value:
    """Return the value of an expression of CloudWatch's metric math, as far as the stage's alarms use it. A
    result is missing if an operand is missing, or after a division by zero.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
    """
    match node:
        case ast.Constant(value=float() | int() as number):
            return number
        case ast.Name(id=name):
            return values[name]
        case (
            ast.BinOp(left=left, op=symbol, right=right)
            | ast.Compare(left=left, ops=[symbol], comparators=[right])
        ):
            first, second = _result(left, values), _result(right, values)
            if first is None or second is None or (isinstance(symbol, ast.Div) and second == 0):
                return None
            return _OPERATORS[type(symbol)](first, second)
        case ast.Call(func=ast.Name(id="SUM"), args=[ast.List(elts=parts)]):
            addends = [value for part in parts if (value := _result(part, values)) is not None]
            return sum(addends) if addends else None
        case ast.Call(func=ast.Name(id="IF"), args=[condition, then, otherwise]):
            truth = _result(condition, values)
            return None if truth is None else _result(then if truth else otherwise, values)
    raise ValueError(f"cannot be evaluated: {ast.unparse(node)}")
