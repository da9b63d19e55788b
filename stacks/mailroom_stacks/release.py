"""The function `release`, with the rules that invoke it every minute, and the alarms of what it releases."""

from collections.abc import Sequence
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_cloudwatch import TreatMissingData
from constructs import Construct

from mailroom.environment import LineSettings, ReleaseSettings
from mailroom.ledger.waits import INDEX, SHARDS
from mailroom_stacks.canary import put_canaries
from mailroom_stacks.constructs.function import FunctionSpec, HandlerFunction
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.logical_ids import hold_permissions
from mailroom_stacks.constructs.runs import read_runs, runs_table
from mailroom_stacks.constructs.stage_alarm import AlarmText, counted, read_log, stage_alarm
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.settings import Settings

FUNCTION = "release"
MINUTE = 60
TIMEOUT_SECONDS = 60
LEASE_MARGIN_SECONDS = 15
"""Seconds for which a round's lease outlives its function's time-out."""
LATE_SECONDS = 300
"""Lateness of the oldest message that is due, in seconds, from which on an alarm rings."""


class Release(Construct):
    """Function that hands over waiting messages: a round for each shard of due messages, and one for each
    channel's line."""

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        storage: MailboxStack,
        dispatch: dict[str, Any],
        grants: Sequence[Grant],
        line_arns: Sequence[str],
    ) -> None:
        """`dispatch` and `grants`: settings and rights of `dispatch`, which this function needs as well.
        `line_arns`: queues that get the messages of a line."""
        super().__init__(scope, "Release")
        lines = {
            row.event_type: LineSettings(
                per_second=row.channel.messages_per_second * row.polling.share,
                per_day=row.channel.days,
                reserve=row.channel.lanes["normal"].reserve,
            )
            # Channels whose bulk lane was removed are included: messages may still wait in their lines.
            for row in sorted(settings.lane_rows(), key=lambda row: row.lane == "bulk")
        }
        ledger, canary = storage.ledger.table_arn, settings.monitoring.canary
        contents = ["dynamodb:BatchGetItem", "dynamodb:BatchWriteItem"]
        function = HandlerFunction(
            self,
            settings,
            FunctionSpec(
                function=FUNCTION,
                timeout_seconds=TIMEOUT_SECONDS,
                memory_mb=settings.release.memory_mb,
                remedy="What waits is not handed over until it runs again. Nothing is lost: each minute it "
                "tries anew.",
                comes_back_seconds=MINUTE,
                grants=[
                    *grants,
                    Grant(
                        ["dynamodb:BatchGetItem", *(["dynamodb:PutItem"] if canary else [])],
                        [storage.mailbox.table_arn],
                    ),
                    Grant(["dynamodb:Query"], [f"{ledger}/index/{INDEX}"]),
                    Grant(contents, [storage.contents.table_arn]),
                    Grant(["dynamodb:GetItem", "dynamodb:UpdateItem"], [storage.budgets.table_arn]),
                    *([Grant(["sqs:GetQueueAttributes"], line_arns)] if line_arns else []),
                    *read_runs(storage, settings),
                ],
                environment=ReleaseSettings(
                    **dispatch,
                    mailbox_table=storage.mailbox.table_name,
                    contents_table=storage.contents.table_name,
                    budgets_table=storage.budgets.table_name,
                    lines=lines,
                    runs_table=runs_table(settings),
                    lease_seconds=TIMEOUT_SECONDS + LEASE_MARGIN_SECONDS,
                ),
            ),
        ).resource
        for shard in range(SHARDS):
            _every_minute(self, settings, function, "shard", shard)
        for channel in lines:
            _every_minute(self, settings, function, "line", channel)
        _watch(self, settings)
        if canary:
            put_canaries(self, settings, function)


def _every_minute(
    scope: Construct, settings: Settings, function: lambda_.Function, kind: str, value: int | str
) -> None:
    """Invoke the function for one part, by a rule of its own: EventBridge allows five targets a rule."""
    rule = events.Rule(
        scope,
        f"Every-{kind}-{value}",
        rule_name=settings.name(f"{FUNCTION}-{kind}-{value}"),
        description=f"Releases the messages that waited, of {kind} {value}",
        schedule=events.Schedule.rate(Duration.minutes(1)),
        targets=[
            # A failed invocation is not retried: the next minute's round sends the rest.
            targets.LambdaFunction(
                function,
                event=events.RuleTargetInput.from_object({kind: value}),
                max_event_age=Duration.minutes(1),
                retry_attempts=0,
            )
        ],
    )
    hold_permissions(rule, function)


def _watch(scope: Construct, settings: Settings) -> None:
    """Ring if something is released late, or if no round ends any more: each round reports its lateness."""
    text = AlarmText(
        kind="release-late",
        meaning=f"Messages that wait are handed over more than {LATE_SECONDS} s after their time, or no "
        f"round of {FUNCTION} has ended for five minutes. They stay where they wait; none of them is lost.",
        next_step=f"{read_log(settings, FUNCTION)}; it goes on by itself as soon as rounds end again",
    )
    lateness = counted(settings, FUNCTION, "ReleaseLate", "Maximum").with_(period=Duration.minutes(1))
    missing = TreatMissingData.BREACHING
    stage_alarm(scope, "Late", settings, text, lateness, LATE_SECONDS * 1000, periods=5, missing=missing)
