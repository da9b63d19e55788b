"""The function `release`, with the rule that invokes it every minute, and the alarm of late releases."""

from collections.abc import Sequence
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_cloudwatch import TreatMissingData
from constructs import Construct

from mailroom.environment import LineSettings, ReleaseSettings
from mailroom.ledger.waits import INDEX
from mailroom_stacks.canary import put_canaries
from mailroom_stacks.constructs.function import FunctionSpec, HandlerFunction, arn_by_name
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
    """Function that puts due messages into their queues. A rule invokes it each minute. That invocation looks
    at all lists of waiting messages, and invokes the function again for each shard of due messages, and for
    each channel whose messages wait for its daily limit, if there is work."""

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
        # Lambda stops a chain of about 16 invocations of a function by itself. A chain of this function has
        # two, so the limit stays: https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html.
        itself = arn_by_name(self, "lambda", "function", settings.name(FUNCTION))
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
                # Lambda's minimum: an older event has no work that the next minute would not do.
                max_event_age=MINUTE,
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
                    Grant(["lambda:InvokeFunction"], [itself]),
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
        _every_minute(self, settings, function)
        _watch(self, settings)
        if canary:
            put_canaries(self, settings, function)


def _every_minute(scope: Construct, settings: Settings, function: lambda_.Function) -> None:
    """Create the rule that invokes the function each minute."""
    rule = events.Rule(
        scope,
        "EveryMinute",
        rule_name=settings.name(FUNCTION),
        description="Queues the due messages",
        schedule=events.Schedule.rate(Duration.minutes(1)),
        targets=[
            # These two properties are about EventBridge's attempts to pass the event to Lambda. What happens
            # to an event that Lambda has accepted is set by `max_event_age` of the function. In both cases
            # the event of the next minute does the same work.
            targets.LambdaFunction(
                function,
                event=events.RuleTargetInput.from_object({"parts": "all"}),
                max_event_age=Duration.seconds(MINUTE),
                retry_attempts=0,
            )
        ],
    )
    hold_permissions(rule, function)


def _watch(scope: Construct, settings: Settings) -> None:
    """Create two alarms. One rings if messages are released late, or if no invocation by the rule has ended
    recently: each of them reports the lateness of the oldest due message. The other rings if messages wait
    for a campaign run that does not answer."""
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
        next_step=f"mailroom messages list --status scheduled --stage {settings.stage} shows their run",
    )
    age = counted(settings, FUNCTION, "RunUnknown", "Maximum")
    stage_alarm(scope, "RunUnknown", settings, text, age, UNKNOWN_SECONDS * 1000)
