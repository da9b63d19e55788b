"""Reads a stage's dashboard as CloudWatch would get it."""

import json
import re
from typing import Any

from tests.support.stacks.templates import PSEUDO, Templates

Metric = tuple[str, str, tuple[tuple[str, str], ...]]
"""Namespace, name, dimensions."""


def body(stage: Templates) -> dict[str, Any]:
    """The body, its references filled in."""
    sub = stage["monitoring"].one("CloudWatch::Dashboard")["DashboardBody"]["Fn::Sub"]
    filled = re.sub(r"\$\{([^}]+)\}", lambda found: PSEUDO[found[1]], sub)
    read: dict[str, Any] = json.loads(filled)
    return read


def widgets(stage: Templates, kind: str = "") -> list[dict[str, Any]]:
    """Its widgets, or those of one type."""
    return [each for each in body(stage)["widgets"] if each["type"] == (kind or each["type"])]


def lines(stage: Templates) -> list[list[Any]]:
    """Every line of every graph."""
    return [line for each in widgets(stage, "metric") for line in each["properties"].get("metrics", [])]


def metrics(stage: Templates) -> set[Metric]:
    """The metrics that are shown by name."""
    found = set()
    for line in lines(stage):
        if isinstance(line[0], str):
            namespace, name, *pairs = (each for each in line if isinstance(each, str))
            found.add((namespace, name, tuple(zip(pairs[::2], pairs[1::2], strict=True))))
    return found


def expressions(stage: Templates) -> list[str]:
    """The formulas and searches."""
    return [line[0]["expression"] for line in lines(stage) if isinstance(line[0], dict)]


def shown(stage: Templates, namespace: str, metric: str, dimension: str) -> set[str]:
    """Whose metric is on the dashboard: the values of its dimension."""
    return {
        value
        for of, name, dimensions in metrics(stage)
        for key, value in dimensions
        if (of, name, key) == (namespace, metric, dimension)
    }
