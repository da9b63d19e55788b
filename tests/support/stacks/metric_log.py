"""Metrics that a stage would report, and the states of its alarms with them."""

from collections import defaultdict
from typing import Any

from mailroom_local.pump.alarms import MINUTE, Query, Value, state_of, value_in

BEGIN = 1_800_000_000.0
"""Time of the deployment, at the beginning of a minute."""


class MetricLog:
    """Values of metrics by minute. Times are in seconds since the deployment."""

    def __init__(self) -> None:
        self._minutes: dict[tuple[Any, ...], dict[float, float]] = defaultdict(dict)

    def add(self, name: str, second: float, value: float = 1, **dimensions: str) -> None:
        """Add a value to a metric, as a sum."""
        minutes = self._minutes[name, *sorted(dimensions.items())]
        minute = BEGIN + second - second % MINUTE
        minutes[minute] = minutes.get(minute, 0) + value

    def read(self, query: Query, end: float) -> Value:
        """Return the value of a metric of an alarm in the period that ends at `end`."""
        metric = query["Metric"]
        names = sorted((entry["Name"], str(entry["Value"])) for entry in metric.get("Dimensions", []))
        return value_in(self._minutes.get((metric["MetricName"], *names), {}), query, end)

    def rings(self, alarm: dict[str, Any], second: float) -> bool:
        """Return whether an alarm rings. During its warm-up it does not."""
        warm_up = alarm.get("WarmUpConfiguration", {}).get("WarmUpPeriodDurationInMinutes", 0)
        return second >= warm_up * MINUTE and state_of(alarm, self.read, BEGIN + second) == "ALARM"

    def ringing_minutes(self, alarm: dict[str, Any], minutes: int) -> list[int]:
        """Return the minutes after the deployment at whose end an alarm rings."""
        return [minute for minute in range(minutes) if self.rings(alarm, minute * MINUTE + MINUTE - 1)]
