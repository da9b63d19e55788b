"""Metrics that functions log, in the real emulator's CloudWatch."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mailroom_local.aws import LocalSession, patient
from mailroom_local.pump.metrics import LoggedMetrics

NOW = datetime(2100, 1, 1, 12, 0, 30, tzinfo=UTC)
"""Time of the metrics: the emulator drops metrics that are two weeks old by the real clock."""


def metric_line(value: list[float], *dimensions: list[str]) -> str:
    embedded: dict[str, Any] = {
        "Namespace": "Mailroom",
        "Dimensions": dimensions,
        "Metrics": [{"Name": "Sent", "Unit": "Count"}],
    }
    about = {"Timestamp": round(NOW.timestamp() * 1000), "CloudWatchMetrics": [embedded]}
    return json.dumps(
        {"_aws": about, "stage": "local", "channel": "mail", "Sent": value}, separators=(",", ":")
    )


def sent_total(cloudwatch: Any, **dimensions: str) -> float:
    found = cloudwatch.get_metric_statistics(
        Namespace="Mailroom",
        MetricName="Sent",
        Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
        StartTime=NOW - timedelta(hours=1),
        EndTime=NOW + timedelta(hours=1),
        Period=300,
        Statistics=["Sum"],
    )
    total: float = sum(each["Sum"] for each in found["Datapoints"])
    return total


def test_a_logged_metric_is_counted_once_for_each_set_of_dimensions(url: str, tmp_path: Path) -> None:
    log = tmp_path / "ministack.log"
    lines = (metric_line([1, 2], ["stage"], ["stage", "channel"]), metric_line([4], ["stage"]))
    log.write_text("\n".join(("INFO output:", *lines, "")))
    cloudwatch = LocalSession().client("cloudwatch", endpoint_url=url, config=patient())
    metrics = LoggedMetrics(url, log)
    metrics.forward()
    assert (sent_total(cloudwatch, stage="local"), sent_total(cloudwatch, stage="local", channel="mail")) == (
        7,
        3,
    )
    half, rest = metric_line([8], ["stage"])[:40], metric_line([8], ["stage"])[40:]
    odd = f"{metric_line([1], ['stage'])}{metric_line([1], ['stage'])}\n{half}\n"
    for text, expected in ((odd, 7), (half, 7), (f"{rest}\n", 15), ("", 15)):
        with log.open("a") as written:
            written.write(text)
        metrics.forward()
        assert sent_total(cloudwatch, stage="local") == expected
