"""The dashboard's widgets, and their places: from left to right, then downwards."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

REGION = "${AWS::Region}"
"""CloudFormation fills it in."""
Options = Mapping[str, object]
Series = list[object]
"""A metric or an expression of a graph: namespace, name, dimensions in pairs, and how it is drawn."""


@dataclass(frozen=True)
class Widget:
    """Something to look at; `width` of the 24 columns, and rows."""

    kind: Literal["alarm", "log", "metric", "text"]
    width: int
    height: int
    properties: Mapping[str, object]


def text(markdown: str, height: int) -> Widget:
    """Words, over the whole width."""
    return Widget("text", 24, height, {"markdown": markdown})


def heading(title: str, sentence: str) -> Widget:
    """What comes below, and what it says."""
    return text(f"## {title}\n{sentence}", 2)


def alarms(title: str, arns: Sequence[str], height: int) -> Widget:
    """The states of up to 100 alarms, those that changed last first."""
    return Widget("alarm", 24, height, {"title": title, "alarms": [*arns], "sortBy": "stateUpdatedTimestamp"})


def metric(namespace: str, name: str, dimensions: Mapping[str, str], **options: object) -> Series:
    """A metric's line."""
    pairs = [part for pair in dimensions.items() for part in pair]
    return [namespace, name, *pairs, *([options] if options else [])]


def expression(formula: str, **options: object) -> Series:
    """A line that is reckoned from others, or found by a search."""
    return [{"expression": formula, **options}]


def graph(
    title: str,
    lines: Sequence[Series],
    *,
    stat: str,
    marks: Mapping[str, float] | None = None,
    width: int = 8,
    period: int = 300,
    stacked: bool = False,
) -> Widget:
    """Lines over time, from zero up; `marks` are lines across, such as a threshold, by their labels."""
    properties: dict[str, Any] = {
        "title": title,
        "view": "timeSeries",
        "region": REGION,
        "stat": stat,
        "period": period,
        "stacked": stacked,
        "metrics": [*lines],
        "yAxis": {"left": {"min": 0}},
    }
    if marks:
        lines_across = [{"label": label, "value": value} for label, value in marks.items()]
        properties["annotations"] = {"horizontal": lines_across}
    return Widget("metric", width, 6, properties)


def numbers(title: str, lines: Sequence[Series], *, stat: str, width: int, whole_range: bool) -> Widget:
    """Single numbers: of the whole time that the dashboard shows, or of its last minutes."""
    return Widget(
        "metric",
        width,
        4,
        {
            "title": title,
            "view": "singleValue",
            "region": REGION,
            "stat": stat,
            "period": 300,
            "setPeriodToTimeRange": whole_range,
            "metrics": [*lines],
        },
    )


def ringing(title: str, arn: str, width: int = 8) -> Widget:
    """An alarm's own graph: its metric goes by an id that only its stack knows."""
    properties = {"title": title, "view": "timeSeries", "region": REGION, "annotations": {"alarms": [arn]}}
    return Widget("metric", width, 6, properties)


def found(title: str, log_group: str, query: str, width: int = 8) -> Widget:
    """A table of what CloudWatch Logs Insights finds in a log."""
    source = f"SOURCE '{log_group}' | {query}"
    return Widget("log", width, 6, {"title": title, "view": "table", "region": REGION, "query": source})


COLUMNS = 24
MOST_WIDGETS = 500
"""CloudWatch shows no more on a dashboard."""


def placed(widgets: Iterable[Widget]) -> list[dict[str, object]]:
    """The widgets with their places. Raises ValueError where there are more than a dashboard may have."""
    column, row, below = 0, 0, 0
    shown: list[dict[str, object]] = []
    for widget in widgets:
        if column + widget.width > COLUMNS:
            column, row = 0, below
        place = {"x": column, "y": row, "width": widget.width, "height": widget.height}
        shown.append({"type": widget.kind, **place, "properties": dict(widget.properties)})
        column += widget.width
        below = max(below, row + widget.height)
    if len(shown) > MOST_WIDGETS:
        raise ValueError(f"a dashboard may have {MOST_WIDGETS} widgets, and this one would have {len(shown)}")
    return shown
