"""Reads metrics from the functions' logs, and evaluates alarms like CloudWatch, because the emulator does
neither."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mailroom_local.aws import LocalSession, patient
from mailroom_local.pump.alarms import evaluate
from mailroom_local.pump.functions import TROUBLE

SECONDS = 5.0
ROUNDS = 3
"""Number of times that metrics are read before each evaluation of the alarms. Evaluating takes the emulator
more time than reading."""
EMBEDDED = b'{"_aws":'
"""Beginning of a line in the embedded metric format. Powertools writes every value as a list."""


class LoggedMetrics:
    """Metrics in the emulator's log, which contains the output of all functions."""

    def __init__(self, url: str, log: Path) -> None:
        self._cloudwatch = LocalSession().client("cloudwatch", endpoint_url=url, config=patient())
        self._sqs = LocalSession().client("sqs", endpoint_url=url, config=patient())
        self._log, self._offset = log, 0

    def run(self) -> None:
        """Forward metrics and evaluate the alarms every few seconds. Never returns."""
        while True:
            for _ in range(ROUNDS):
                self.forward()
                time.sleep(SECONDS)
            try:
                evaluate(self._cloudwatch, self._sqs, time.time())
            except TROUBLE as trouble:  # the next evaluation tries again
                print(f"alarms are not evaluated: {trouble}", flush=True)

    def forward(self) -> None:
        """Forward the metrics that were logged since the last call."""
        with self._log.open("rb") as log:
            log.seek(self._offset)
            logged = log.read()
        lines = logged[: logged.rfind(b"\n") + 1]  # the last line may be incomplete
        self._offset += len(lines)
        logged_values: dict[tuple[Any, ...], list[float]] = defaultdict(list)
        for line in lines.splitlines():
            if not line.startswith(EMBEDDED):
                continue
            try:
                values_of_line = list(_values(json.loads(line)))
            except (ValueError, KeyError, TypeError) as fault:
                # Two threads may have written into the same line, or the line may be incomplete.
                print(f"not a metric: {fault!r}", flush=True)
                continue
            for name, value in values_of_line:
                logged_values[name].append(value)
        by_namespace: dict[str, list[Any]] = defaultdict(list)
        for (namespace, minute, metric, unit, dimensions), values in logged_values.items():
            counts = Counter(values)
            by_namespace[namespace].append(
                {
                    "MetricName": metric,
                    "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions],
                    "Timestamp": minute,
                    "Values": list(counts),  # all values instead of their sum: percentiles need them
                    "Counts": list(counts.values()),
                    "Unit": unit,
                }
            )
        for namespace, data in by_namespace.items():
            try:
                self._cloudwatch.put_metric_data(Namespace=namespace, MetricData=data)
            except TROUBLE as trouble:  # the pump continues without these metrics
                print(f"metrics are lost: {trouble}", flush=True)


def _values(line: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Yield each value of a line with its key: namespace, minute (epoch seconds), name, unit and dimensions.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html"""
    minute = line["_aws"]["Timestamp"] // 60_000 * 60
    for directive in line["_aws"]["CloudWatchMetrics"]:
        for names in directive["Dimensions"]:
            dimensions = tuple((name, str(line[name])) for name in names)
            for metric in directive["Metrics"]:
                key = (directive["Namespace"], minute, metric["Name"], metric["Unit"], dimensions)
                yield from ((key, value) for value in line[metric["Name"]])
