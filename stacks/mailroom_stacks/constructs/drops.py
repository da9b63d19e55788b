"""The alarm of what AWS's services drop between the parts of a stage, and report as a metric alone."""

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import MathExpression
from constructs import Construct

from mailroom_stacks.constructs.alarms import BEGUN, FIVE_MINUTES, AlarmText, metric, stage_alarm
from mailroom_stacks.settings.stage import Settings


def watch_drops(scope: Construct, settings: Settings) -> None:
    """Make one alarm of all these metrics: an alarm is paid for by its metrics."""
    topics = {"events": settings.name("feedback"), "notices": settings.name(BEGUN)}
    rule = {"RuleName": settings.name("dead-letters-schedule")}
    dropped = {
        # Of the whole account, as Lambda reports it without dimensions: no function of a stage is in a loop.
        "loops": metric("AWS/Lambda", "RecursiveInvocationsDropped", "Sum"),
        "passes": metric("AWS/Events", "FailedInvocations", "Sum", rule),
        **{
            name: metric("AWS/SNS", "NumberOfNotificationsFailed", "Sum", {"TopicName": topic})
            for name, topic in topics.items()
        },
    }
    about = AlarmText(
        kind="aws-drops",
        meaning="AWS dropped something on its way between two parts: SNS an event of a provider or a notice "
        "of an alarm, EventBridge a pass over the dead letters, or Lambda an invocation of any application "
        "of the account that it took for a loop. A policy or a key has probably changed since the "
        "deployment.",
        next_step=f"mailroom doctor --stage {settings.stage} (what is missing?)",
    )
    total = MathExpression(
        expression=f"SUM([{', '.join(dropped)}])",
        using_metrics=dropped,
        period=Duration.seconds(FIVE_MINUTES),
        label="dropped",
    )
    stage_alarm(scope, "Drops", settings, about, total, 1)
