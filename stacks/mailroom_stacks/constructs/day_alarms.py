"""Alarms of the daily limit of a channel: an urgent alarm if messages of the lane `normal` wait, such as
login codes, and a warning for office hours if only bulk messages wait."""

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import MathExpression
from constructs import Construct

from mailroom_stacks.constructs.stage_alarm import (
    FIVE_MINUTES,
    AlarmText,
    counted,
    identifier,
    read_log,
    stage_alarm,
)
from mailroom_stacks.settings.channels import LaneRow
from mailroom_stacks.settings.settings import Settings

PAGE = "day-used-up"
PERIODS = 5
"""Number of periods of five minutes that an alarm looks at. Together they are longer than the quarter of an
hour between two tries of a waiting message."""


def watch_days(scope: Construct, settings: Settings) -> None:
    """Create the alarms of each channel that has a daily limit or quota."""
    for row in settings.lane_rows():
        if row.lane == "normal" and (row.event_type == "mail" or row.channel.days):
            _codes_wait(scope, settings, row)
        if row.lane == "bulk" and row.channel.days:
            _bulk_waits(scope, settings, row)


def _codes_wait(scope: Construct, settings: Settings, row: LaneRow) -> None:
    text = AlarmText(
        subject=row.budget,
        kind=PAGE,
        meaning=f"The provider's daily quota of {row.budget} is used up, so even messages of the lane normal "
        "wait, such as codes. Each message is retried every 15 minutes and does not become a dead letter; "
        "bulk messages are not sent.",
        next_step=f"mailroom doctor --stage {settings.stage}, request a higher quota, and see "
        f"{read_log(settings, row.function)}",
    )
    used_up = counted(settings, row.function, "DayUsedUp")
    drawn = used_up.with_(label=f"{row.budget} refused")
    id_ = f"{row.budget}-used-up"
    stage_alarm(scope, id_, settings, text, used_up, 1, drawn=drawn, periods=PERIODS, at_least=1)


def _bulk_waits(scope: Construct, settings: Settings, row: LaneRow) -> None:
    text = AlarmText(
        subject=row.budget,
        kind=f"{PAGE}-warning",
        meaning=f"Bulk messages or campaigns wait for the daily limit of {row.budget}; messages of the lane "
        "normal do not wait. The waiting messages are sent automatically as soon as the limit allows.",
        next_step=f"mailroom doctor --stage {settings.stage} (until when bulk messages wait), and no action "
        "if they may wait until then",
    )
    waiting = {identifier(f"messages-{row.budget}"): counted(settings, row.function, "WaitsForDay")}
    if not row.fallback:  # a campaign's pages wait only for the first provider's limit
        waiting["pages"] = counted(settings, "collect", "PagesWaitForDay")
    waits = MathExpression(
        # METRICS() would also add up the other metrics of a dashboard graph that contains this expression.
        expression=f"SUM([{', '.join(waiting)}])",
        using_metrics=waiting,
        period=Duration.seconds(FIVE_MINUTES),
        label=f"{row.budget} bulk waits",
    )
    stage_alarm(scope, f"{row.budget}-waits", settings, text, waits, 1, periods=PERIODS, at_least=1)
