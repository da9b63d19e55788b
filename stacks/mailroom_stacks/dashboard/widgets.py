"""Widgets of the dashboard. A graph of an alarm shows the alarm's own metric and threshold."""

from collections.abc import Sequence
from typing import Any

from aws_cdk import aws_cloudwatch as cloudwatch

from mailroom_stacks.constructs.stage_alarm import StageAlarm

FULL = cloudwatch.HorizontalAnnotation(value=100, label="the alarm rings", color=cloudwatch.Color.RED)
"""Line at the threshold, for graphs of metrics as percentages of thresholds."""
AXIS = cloudwatch.YAxisProps(min=0, show_units=False)
Drawn = Sequence[StageAlarm | cloudwatch.IMetric]


def graph(
    title: str,
    left: Drawn,
    right: Drawn = (),
    *,
    lines: Sequence[cloudwatch.HorizontalAnnotation] = (),
    width: int = 8,
    height: int = 4,
    **options: Any,
) -> cloudwatch.GraphWidget:
    """Build a graph of metrics over time, with an axis from zero, and of alarms with their thresholds.
    `lines` belong to the left axis."""
    return cloudwatch.GraphWidget(
        title=title,
        left=_metrics(left),
        right=_metrics(right),
        left_annotations=[*_thresholds(left), *lines],
        right_annotations=_thresholds(right),
        left_y_axis=AXIS,
        right_y_axis=AXIS,
        width=width,
        height=height,
        **options,
    )


def ringing(title: str, alarms: Sequence[StageAlarm], width: int) -> cloudwatch.AlarmStatusWidget:
    """Build a widget with the alarms that ring, the latest first."""
    return cloudwatch.AlarmStatusWidget(
        title=title,
        alarms=[alarm.by_name for alarm in alarms],
        states=[cloudwatch.AlarmState.ALARM],
        sort_by=cloudwatch.AlarmStatusWidgetSortBy.STATE_UPDATED_TIMESTAMP,
        width=width,
        height=3,
    )


def _metrics(drawn: Drawn) -> list[cloudwatch.IMetric]:
    return [item.labelled() if isinstance(item, StageAlarm) else item for item in drawn]


def _thresholds(drawn: Drawn) -> list[cloudwatch.HorizontalAnnotation]:
    """Return horizontal lines at the thresholds of alarms. Alarms with the same threshold share the line of
    the first."""
    alarms = [item for item in drawn if isinstance(item, StageAlarm)]
    return [
        cloudwatch.HorizontalAnnotation(
            value=threshold,
            label=f"{kind}: {threshold:,g}",
            color=cloudwatch.Color.ORANGE if kind.endswith("-warning") else cloudwatch.Color.RED,
        )
        for threshold, kind in {alarm.threshold: alarm.about.kind for alarm in reversed(alarms)}.items()
    ]
