"""MiniStack's application, as uvicorn serves it, with the one thing that our templates need beside it.

MiniStack's CloudFormation refuses alarms on metric math. Here such an alarm becomes one on its first
metric; its name, ARN and outputs stay. Nothing is lost by it: the emulator evaluates no alarm on SQS's
metrics. This file runs with the emulator's own Python and packages.
"""

from typing import Any

from ministack.app import app
from ministack.services.cloudformation import provisioners

__all__ = ["app"]

_record = provisioners._cw_metric_alarm_record


def _on_first_metric(name: str, properties: dict[str, Any]) -> Any:
    metrics = properties.get("Metrics")
    if not metrics:
        return _record(name, properties)
    first = next(each["MetricStat"] for each in metrics if "MetricStat" in each)
    metric = {key: first["Metric"][key] for key in ("Namespace", "MetricName", "Dimensions")}
    kept = {key: value for key, value in properties.items() if key != "Metrics"}
    return _record(name, kept | metric | {"Period": first["Period"], "Statistic": first["Stat"]})


provisioners._cw_metric_alarm_record = _on_first_metric
