"""What a stage pays for by the month, counted in its templates."""

from collections.abc import Iterable, Mapping
from typing import Any

from mailroom_ops.costs.stage_cost import METRICS_OF_STREAM, StageResources


def of_templates(templates: Iterable[Mapping[str, Any]]) -> StageResources:
    """A stage's as CloudFormation would make them."""
    resources = [each for template in templates for each in template.get("Resources", {}).values()]
    by_type: dict[str, list[Mapping[str, Any]]] = {}
    for each in resources:
        by_type.setdefault(each["Type"], []).append(each.get("Properties", {}))
    keys, mappings = by_type.get("AWS::KMS::Key", []), by_type.get("AWS::Lambda::EventSourceMapping", [])
    # Those with a redrive policy have a dead-letter queue, and so a function that reads them.
    queues = [each for each in by_type.get("AWS::SQS::Queue", []) if "RedrivePolicy" in each]
    return StageResources(
        queues=len(queues),
        alarm_metrics=sum(_metrics(each) for each in by_type.get("AWS::CloudWatch::Alarm", [])),
        mapping_metrics=METRICS_OF_STREAM * sum("MetricsConfig" in each for each in mappings),
        dashboards=len(by_type.get("AWS::CloudWatch::Dashboard", [])),
        keys=len(keys),
        rotated_keys=sum(bool(each.get("EnableKeyRotation")) for each in keys),
        secrets=len(by_type.get("AWS::SecretsManager::Secret", [])),
        rounds=sum(
            each.get("ScheduleExpression") == "rate(1 minute)" for each in by_type["AWS::Events::Rule"]
        ),
    )


def _metrics(alarm: Mapping[str, Any]) -> int:
    """An alarm on an expression pays for each metric in it."""
    return sum("MetricStat" in each for each in alarm.get("Metrics", [])) or 1
