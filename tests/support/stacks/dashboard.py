"""Reads a stage's dashboards as CloudWatch would get them."""

import json
from typing import Any

from tests.support.stacks.templates import Templates, text_of

Metric = tuple[str, str, tuple[tuple[str, str], ...]]
"""Namespace, name, dimensions."""
Json = dict[str, Any]


def bodies(stage: Templates) -> list[Json]:
    """The body of the dashboard, its references filled in; empty if the stage has none."""
    made = stage["monitoring"].all("CloudWatch::Dashboard")
    return [json.loads(text_of(each["DashboardBody"])) for each in made]


def widgets(stage: Templates, kind: str = "") -> list[Json]:
    """The widgets of the dashboard, or those of one type."""
    every = [each for body in bodies(stage) for each in body["widgets"]]
    return [each for each in every if each["type"] == (kind or each["type"])]


def graph_lines(stage: Templates) -> list[list[Any]]:
    """Every line of every graph."""
    return [line for each in widgets(stage, "metric") for line in each["properties"].get("metrics", [])]


def metrics_of_graph(widget: Json) -> set[Metric]:
    """The metrics that a graph names, also those that only its formulas use."""
    found = set()
    for line in widget["properties"].get("metrics", []):
        if isinstance(line[0], str):
            namespace, name, *pairs = (each for each in line if isinstance(each, str))
            found.add((namespace, name, tuple(zip(pairs[::2], pairs[1::2], strict=True))))
    return found


def metrics(stage: Templates) -> set[Metric]:
    """The metrics that any graph names."""
    return {metric for each in widgets(stage, "metric") for metric in metrics_of_graph(each)}


def expressions(stage: Templates) -> list[str]:
    """The formulas and searches."""
    return [line[0]["expression"] for line in graph_lines(stage) if isinstance(line[0], dict)]


def thresholds(widget: Json) -> list[tuple[str, float]]:
    """The lines across a graph, by label and value."""
    drawn = widget["properties"].get("annotations", {}).get("horizontal", [])
    return [(each["label"], each["value"]) for each in drawn]


def arns(widget: Json, *, whole: bool = False) -> list[str]:
    """The alarms that a widget shows, by name; `whole` by ARN."""
    properties = widget["properties"]
    listed = properties.get("alarms", properties.get("annotations", {}).get("alarms", []))
    return [arn if whole else arn.rpartition(":")[2] for arn in listed]


def values_on_dashboard(stage: Templates, namespace: str, metric: str, dimension: str) -> set[str]:
    """Return the values of a dimension of a metric that are on a dashboard."""
    return {
        value
        for of, name, dimensions in metrics(stage)
        for key, value in dimensions
        if (of, name, key) == (namespace, metric, dimension)
    }


def name_of_stage(stage: Templates) -> str:
    """Return the stage's name, which its dashboard's name ends with."""
    return str(stage["monitoring"].output("DashboardName")).removeprefix("mailroom-")
