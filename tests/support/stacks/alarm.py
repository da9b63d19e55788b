"""Reads alarms out of synthesized templates, not out of our constructs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.stacks.templates import Template, Templates, text_of

PHYSICAL = ("QueueName", "FunctionName", "Name")


@dataclass(frozen=True)
class Alarm:
    """An alarm, with the template that it stands in."""

    stack: str
    logical_id: str
    properties: dict[str, Any]
    template: Template

    @property
    def name(self) -> str:
        """Return the alarm's physical name."""
        name: str = self.properties["AlarmName"]
        return name

    @property
    def description(self) -> str:
        """Return the alarm's description."""
        said: str = self.properties["AlarmDescription"]
        return said

    def metrics(self) -> set[tuple[str, str, tuple[tuple[str, str], ...]]]:
        """Yield the alarm's metrics: namespace, name, and dimensions with the resources that they name."""
        stats = [each["MetricStat"]["Metric"] for each in self._queries() if "MetricStat" in each]
        return {self._metric(each) for each in stats or [self.properties]}

    def _queries(self) -> list[dict[str, Any]]:
        queries: list[dict[str, Any]] = self.properties.get("Metrics", [])
        return queries

    def _metric(self, metric: dict[str, Any]) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        dimensions = metric.get("Dimensions", [])
        told = tuple((each["Name"], physical_name(self.template, each["Value"])) for each in dimensions)
        return metric["Namespace"], metric["MetricName"], told


def physical_name(template: Template, value: Any) -> str:
    """The physical name of what a dimension refers to; the logical one of what CloudFormation names."""
    if isinstance(value, str):
        return value
    logical_id = value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0]
    properties = template.body["Resources"][logical_id]["Properties"]
    of_mapping = "EventSourceArn" in properties
    found: str = next(
        (properties[key] for key in PHYSICAL if key in properties and not of_mapping), logical_id
    )
    return found


def alarms(stage: Templates) -> list[Alarm]:
    """Return all alarms of a stage."""
    return [
        Alarm(stack, logical_id, resource["Properties"], template)
        for stack, template in stage.stacks.items()
        for logical_id, resource in template.body["Resources"].items()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    ]


def alarm_named(stage: Templates, name: str) -> dict[str, Any]:
    """The properties of the one alarm of that name."""
    (found,) = (each.properties for each in alarms(stage) if each.name == name)
    return found


def values_with_alarm(stage: Templates, namespace: str, metric: str, dimension: str) -> set[str]:
    """Return the values of a dimension for which an alarm on a metric exists."""
    return {
        value
        for each in alarms(stage)
        for of, name, dimensions in each.metrics()
        for key, value in dimensions
        if (of, name, key) == (namespace, metric, dimension)
    }


def queues(stage: Templates) -> tuple[set[str], set[str]]:
    """The names of a stage's queues, and of its dead-letter queues: those that others redrive to."""
    every, dead = set(), set()
    for template in stage.stacks.values():
        resources = template.body["Resources"]
        for properties in template.all("SQS::Queue"):
            every.add(properties["QueueName"])
            redrive = properties.get("RedrivePolicy")
            if redrive:
                target = redrive["deadLetterTargetArn"]["Fn::GetAtt"][0]
                dead.add(resources[target]["Properties"]["QueueName"])
    return every - dead, dead


def function_names(stage: Templates) -> set[str]:
    """The names of a stage's functions."""
    return {each["FunctionName"] for of in stage.stacks.values() for each in of.all("Lambda::Function")}


def streams(stage: Templates) -> Iterator[tuple[str, str]]:
    """Each mapping that reads a table's stream, by its logical id, and its function's name."""
    for template in stage.stacks.values():
        resources = template.body["Resources"]
        for logical_id, resource in resources.items():
            if resource["Type"] != "AWS::Lambda::EventSourceMapping":
                continue
            source = text_of(resource["Properties"]["EventSourceArn"])
            if "StreamArn" in source:
                function = resources[resource["Properties"]["FunctionName"]["Ref"]]
                yield logical_id, function["Properties"]["FunctionName"]
