"""The function `release`, with the rules that invoke it every minute, and the alarm of late releases."""

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
from mailroom_stacks.constructs.stage_alarm import AlarmText, counted, read_log, stage_alarm
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.settings import Settings

FUNCTION = "release"
MINUTE = 60
TIMEOUT_SECONDS = 60
LEASE_MARGIN_SECONDS = 15
"""Seconds by which the lease of one invocation is longer than the function's time-out."""
LATE_SECONDS = 300
"""Lateness of the oldest due message, in seconds, at which an alarm rings."""

UNKNOWN_SECONDS = 900
"""Age of the oldest message that waits for an unknown campaign run, in seconds, at which an alarm rings."""


class Release(Construct):
    """Function that puts due messages into their queues. Each minute it is invoked once for each shard of
    waiting messages, and once for each channel, for messages that wait for the channel's daily limit."""

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        storage: MailboxStack,
        dispatch: dict[str, Any],
        grants: Sequence[Grant],
        line_arns: Sequence[str],
    ) -> None:
        """`dispatch` has the settings of the function `dispatch` and `grants` its permissions, which this
        function needs as well. `line_arns` are the ARNs of the bulk queues, whose lengths limit how many
        messages are released."""
        super().__init__(scope, "Release")
        lines = {
            row.event_type: LineSettings(
                per_second=row.channel.messages_per_second * row.polling.share,
                per_day=row.channel.days,
                reserve=row.channel.lanes["normal"].reserve,
            )
            # Channels without a bulk lane are included: if the lane was removed, messages may still wait.
            for row in sorted(settings.lane_rows(), key=lambda row: row.lane == "bulk")
            # A message that waits for a fallback's limit is queued for the first provider again.
            if not row.fallback
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
                remedy="Waiting messages are not queued until the function succeeds. Nothing is lost: it is "
                "invoked again each minute.",
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
                    Grant(["dynamodb:BatchGetItem"], [storage.runs.table_arn]),
                ],
                environment=ReleaseSettings(
                    **dispatch,
                    mailbox_table=storage.mailbox.table_name,
                    contents_table=storage.contents.table_name,
                    budgets_table=storage.budgets.table_name,
                    lines=lines,
                    runs_table=storage.runs.table_name,
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
    """Create the rule that invokes the function for one shard or channel. Each has its own rule, because
    EventBridge allows only five targets per rule."""
    rule = events.Rule(
        scope,
        f"Every-{kind}-{value}",
        rule_name=settings.name(f"{FUNCTION}-{kind}-{value}"),
        description=f"Queues the due messages of {kind} {value}",
        schedule=events.Schedule.rate(Duration.minutes(1)),
        targets=[
            # A failed invocation is not retried: the invocation of the next minute continues its work.
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
    """Create two alarms. One rings if messages are released late, or if no invocation has ended recently:
    each invocation reports its lateness. The other rings if messages wait for a campaign run that does not
    answer."""
    text = AlarmText(
        kind="release-late",
        meaning=f"Waiting messages are queued more than {LATE_SECONDS} s after their time, or no invocation "
        f"of {FUNCTION} has succeeded for five minutes. The messages still wait; none of them is lost.",
        next_step=f"{read_log(settings, FUNCTION)}; messages are queued as soon as invocations succeed again",
    )
    lateness = counted(settings, FUNCTION, "ReleaseLate", "Maximum").with_(period=Duration.minutes(1))
    missing = TreatMissingData.BREACHING
    stage_alarm(scope, "Late", settings, text, lateness, LATE_SECONDS * 1000, periods=5, missing=missing)
    text = AlarmText(
        kind="run-unknown",
        meaning="Messages of a campaign run wait, because the run is missing in the table of runs or cannot "
        f"be read, and the oldest was put over {UNKNOWN_SECONDS // 60} minutes ago. None of them is sent or "
        "lost.",
        next_step=f"mailroom list --status scheduled --stage {settings.stage} shows their run",
    )
    age = counted(settings, FUNCTION, "RunUnknown", "Maximum")
    stage_alarm(scope, "RunUnknown", settings, text, age, UNKNOWN_SECONDS * 1000)
