"""The dashboard, on one screen: which alarms ring, whether messages arrive in time, and why they are
delayed."""

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import IConstruct

from mailroom_stacks.constructs.outcome_alarms import MESSAGES, TRIES
from mailroom_stacks.constructs.stage_alarm import stage_alarms
from mailroom_stacks.dashboard.metrics import StageMetrics, of_kind
from mailroom_stacks.dashboard.widgets import FULL, graph, ringing
from mailroom_stacks.settings.constants import SLOW_SECONDS
from mailroom_stacks.settings.settings import Settings

URGENT = (
    *("dlq-not-empty", "waiting-long", "backlog-old", "gave-up", "dropped", "iterator-age", "api-5xx"),
    *("ses-bounce-rate", "ses-complaint-rate", "day-used-up", "release-late", "run-unknown"),
    *("run-paused", "canary-missing", "codes-late", "aws-drops", "misconfigured", TRIES, MESSAGES),
)
"""Kinds of alarms that need immediate action: without it, messages wait or are lost, or sending ends.
`mailroom docs operate` has the same list."""
SLOW_CODE = cloudwatch.HorizontalAnnotation(value=SLOW_SECONDS * 1000, label=f"slow: {SLOW_SECONDS} s")
FIRST_COMMANDS = (
    "**Mailroom {stage}**\n\n"
    "`mailroom doctor --stage {stage}`  \n"
    "`mailroom messages list --reasons --stage {stage} --since 1h`  \n"
    "`mailroom messages dead-letters --stage {stage}`"
)


def overview(stage: IConstruct, settings: Settings) -> list[list[cloudwatch.IWidget]]:
    """Return the rows of widgets."""
    metrics = StageMetrics(stage, settings)
    urgent = of_kind(stage, *URGENT)
    minor = [alarm for alarm in stage_alarms(stage) if alarm not in urgent]
    text = FIRST_COMMANDS.format(stage=settings.stage)
    return [
        [
            ringing("Alarms that ring: act now", urgent, 10),
            ringing("Alarms that ring: in working hours", minor, 7),
            cloudwatch.TextWidget(markdown=text, width=7, height=3),
        ],
        [graph("Dead letters", metrics.letters(), width=24, view=cloudwatch.GraphWidgetView.BAR)],
        [
            graph("Codes: from put to accepted, ms", metrics.codes(), lines=[SLOW_CODE]),
            graph("Accepted (left), failed (right)", metrics.accepted(), metrics.failed()),
            graph("Tries: retried, unknown outcome, sent again", metrics.unfinished()),
        ],
        _limits(stage, settings, metrics),
    ]


def _limits(stage: IConstruct, settings: Settings, metrics: StageMetrics) -> list[cloudwatch.IWidget]:
    """Return the row of limits, each in a graph with the numbers that it limits. Only SES has rates of
    bounces and complaints."""
    rates = [*metrics.shares("ses-bounce-rate"), *metrics.shares("ses-complaint-rate")]
    waits = of_kind(stage, "day-used-up", "day-used-up-warning")
    lines = [
        cloudwatch.HorizontalAnnotation(value=limit, label=f"{channel} per_day: {limit:,}")
        for channel, row in settings.channels.items()
        for _, limit in row.days[-1:]
    ]
    width = 8 if rates else 12
    return [
        graph("The day: accepted (left), waiting (right)", metrics.days(), waits, lines=lines, width=width),
        *([graph("SES: bounces and complaints, % of their alarms", rates, lines=[FULL])] if rates else []),
        graph("Oldest message, % of its alarm", metrics.worst("waiting-long"), lines=[FULL], width=width),
    ]
