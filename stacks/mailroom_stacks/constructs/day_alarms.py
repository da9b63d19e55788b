"""Alarms of the daily limit of a channel: an urgent alarm if messages of the lane `normal` wait, such as
login codes, and a warning for office hours if only bulk messages wait. They never ring together."""

from dataclasses import replace

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import MathExpression
from constructs import Construct

from mailroom.providers import provider
from mailroom_stacks.constructs.stage_alarm import AlarmText, counted, identifier, read_log, stage_alarm
from mailroom_stacks.settings.channels import LaneRow
from mailroom_stacks.settings.settings import Settings

PAGE = "day-used-up"
WINDOW = Duration.minutes(25)
"""Time that an alarm looks back. It is longer than the quarter of an hour between two tries of a waiting
message."""


def watch_days(scope: Construct, settings: Settings) -> None:
    """Create the alarms of each channel that has a daily limit, or whose provider has one."""
    for row in settings.lane_rows():
        names = [row.fallback] if row.fallback else settings.providers(row.event_type)[:1]
        if not row.channel.days and not any(provider(name).day_limit for name in names):
            continue
        if row.lane == "normal":
            _codes_wait(scope, settings, row.budget, row.function)
        else:
            _bulk_waits(scope, settings, row)
    if settings.fax and provider(settings.fax.provider).day_limit:
        _codes_wait(scope, settings, "fax", "send-fax")


def _codes_wait(scope: Construct, settings: Settings, budget: str, function: str) -> None:
    text = AlarmText(
        subject=budget,
        kind=PAGE,
        meaning=f"The provider's daily limit of {budget} is used up, so even messages of the lane normal "
        "wait, such as codes. They are retried every 15 minutes and do not become dead letters; bulk "
        "messages are not sent.",
        next_step=f"mailroom doctor --stage {settings.stage}, request a higher limit, and see "
        f"{read_log(settings, function)}",
    )
    used_up = counted(settings, function, "DayUsedUp").with_(period=WINDOW)
    drawn = used_up.with_(label=f"{budget} refused")
    stage_alarm(scope, f"{budget}-used-up", settings, text, used_up, 1, drawn=drawn)


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
    used_up = counted(settings, replace(row, lane="normal").function, "DayUsedUp")
    counts = {**waiting, identifier(f"refused-{row.budget}"): used_up}
    metrics = {name: metric.with_(period=WINDOW) for name, metric in counts.items()}
    bulk, total = f"SUM([{', '.join(waiting)}])", f"SUM([{', '.join(metrics)}])"
    waits = MathExpression(
        # A sum in brackets has a value if one of its metrics lacks data. The other alarm rings if `refused`
        # has a value.
        expression=f"IF({total} > {bulk}, 0, {bulk})",
        using_metrics=metrics,
        period=WINDOW,
        label=f"{row.budget} bulk waits",
    )
    stage_alarm(scope, f"{row.budget}-waits", settings, text, waits, 1)
