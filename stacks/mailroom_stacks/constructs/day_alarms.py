"""Alarms of the day's quota: one that pages where codes wait, one for office hours where only bulk does."""

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import MathExpression
from constructs import Construct

from mailroom_stacks.constructs.stage_alarm import FIVE_MINUTES, AlarmText, counted, read_log, stage_alarm
from mailroom_stacks.settings.channels import LaneRow
from mailroom_stacks.settings.settings import Settings

PAGE = "day-used-up"
PERIODS = 5
"""Periods of five minutes, longer than the quarter of an hour between two tries of a waiting message."""


def watch_days(scope: Construct, settings: Settings) -> None:
    """Make the alarms of each channel that has a limit or quota of the day."""
    for row in settings.lane_rows():
        if row.lane == "normal" and settings.has_day(row.event_type):
            _codes_wait(scope, settings, row)
        if row.lane == "bulk" and row.channel.days:
            _bulk_waits(scope, settings, row)


def _codes_wait(scope: Construct, settings: Settings, row: LaneRow) -> None:
    text = AlarmText(
        subject=row.event_type,
        kind=PAGE,
        meaning=f"The provider takes no more messages of {row.event_type} today, and codes wait as well. "
        "Each is tried again every 15 minutes; none becomes a dead letter by that, and bulk gets nothing.",
        next_step=f"mailroom doctor --stage {settings.stage}, request a higher quota, and see "
        f"{read_log(settings, row.function)}",
    )
    used_up = counted(settings, row.function, "DayUsedUp")
    drawn = used_up.with_(label=f"{row.event_type} refused")
    id_ = f"{row.event_type}-used-up"
    stage_alarm(scope, id_, settings, text, used_up, 1, drawn=drawn, periods=PERIODS, at_least=1)


def _bulk_waits(scope: Construct, settings: Settings, row: LaneRow) -> None:
    text = AlarmText(
        subject=row.event_type,
        kind=f"{PAGE}-warning",
        meaning=f"Bulk messages or campaigns of {row.event_type} wait for the day's quota; codes do not. "
        "What waits goes out by itself when there is room.",
        next_step=f"mailroom doctor --stage {settings.stage} (until when bulk waits), and nothing if it may "
        "wait until then",
    )
    messages = f"messages_{row.event_type}"
    waits = MathExpression(
        # METRICS() would add up all metrics of a graph that draws this one with others.
        expression=f"SUM([{messages}, pages])",
        using_metrics={
            messages: counted(settings, row.function, "WaitsForDay"),
            "pages": counted(settings, "collect", "PagesWaitForDay"),
        },
        period=Duration.seconds(FIVE_MINUTES),
        label=f"{row.event_type} bulk waits",
    )
    stage_alarm(scope, f"{row.event_type}-waits", settings, text, waits, 1, periods=PERIODS, at_least=1)
