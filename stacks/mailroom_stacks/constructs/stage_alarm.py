"""Alarms: name, text, notices, and the metric and threshold that dashboards draw."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct, IConstruct

from mailroom_stacks.constructs.naming import publish, stage_of
from mailroom_stacks.settings.settings import Settings

BEGUN, ENDED = "alarms", "alarms-ended"
"""Topics of alarms that begin, and of alarms that end."""
LONGEST_DESCRIPTION = 1024
"""Characters that CloudWatch allows in a description."""
FIVE_MINUTES = 300
Statistic = Literal["Sum", "Maximum", "p50", "p99"]
Drawable = cloudwatch.Metric | cloudwatch.MathExpression


def metric(
    namespace: str,
    name: str,
    statistic: Statistic,
    dimensions: Mapping[str, str] | None = None,
    period: int = FIVE_MINUTES,
) -> cloudwatch.Metric:
    """Build the metric of one thing. `period` is the seconds that one data point is about.

    Dimensions are physical names, not references: an alarm and both dashboards use the same metric, and none
    of their stacks waits for another.
    """
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        statistic=statistic,
        dimensions_map=dimensions,
        period=Duration.seconds(period),
    )


def counted(settings: Settings, function: str, name: str, statistic: Statistic = "Sum") -> cloudwatch.Metric:
    """Build a metric that a function counts itself, such as Sent."""
    return metric("Mailroom", name, statistic, {"service": function, "stage": settings.stage})


@dataclass(frozen=True)
class AlarmText:
    """Name and description of an alarm."""

    kind: str
    """End of the alarm's name, such as dlq-not-empty, and name of its page."""
    meaning: str
    """Sentences: what has happened, and what that means."""
    next_step: str
    """Command or action that comes next, without a full stop."""
    subject: str = ""
    """Short name of the watched part; empty for the stage or the account."""
    page: str = ""
    """Page of the manual, if it is another than the page of the kind. A warning shares the page of its
    kind."""
    output: str = ""
    """Beginning of the names of the alarm's outputs; empty for an alarm without outputs."""

    @property
    def short(self) -> str:
        """Alarm's name without the stage's name."""
        return f"{self.subject}-{self.kind}" if self.subject else self.kind

    @property
    def description(self) -> str:
        """Text of the alarm. Raises ValueError if the text is longer than CloudWatch takes."""
        page = self.page or self.kind.removesuffix("-warning")
        text = f"{self.meaning} Next: {self.next_step}. See `mailroom docs {page}`."
        if len(text) > LONGEST_DESCRIPTION:
            raise ValueError(f"the description of {self.short} has {len(text)} characters: {text}")
        return text


@dataclass(frozen=True)
class StageAlarm:
    """Alarm with metric and threshold. Dashboards draw both from here, so no line parts from its alarm."""

    about: AlarmText
    metric: Drawable
    """Metric to draw: the alarm's own, or the metric given as `drawn`."""
    threshold: float
    by_name: cloudwatch.IAlarm
    """Alarm by name. A reference would tie a stack of a dashboard to the stack of the alarm."""

    def labelled(self) -> Drawable:
        """Return the metric, with a label: its own, or what the alarm watches."""
        return self.metric.with_(label=self.metric.label or self.about.subject or self.about.kind)

    def share(self) -> cloudwatch.MathExpression:
        """Return the metric in per cent of the threshold, for graphs of alarms with different thresholds."""
        name = identifier(self.about.short)
        return cloudwatch.MathExpression(
            expression=f"100 * {name} / {self.threshold}",
            using_metrics={name: self.metric},
            label=self.about.subject,
        )


# Alarms by stage. A walk through the construct tree would not find all alarms and functions: jsii returns a
# construct that Python has released as an instance of its base class, which would be missing without an
# error.
_alarms = WeakKeyDictionary[IConstruct, list[StageAlarm]]()


def stage_alarms(scope: IConstruct) -> list[StageAlarm]:
    """Return the alarms of the stage that `scope` is or belongs to."""
    return _alarms.setdefault(stage_of(scope), [])


def identifier(short_name: str) -> str:
    """Return a short name as the id of a metric, which is unique in a graph."""
    return short_name.replace("-", "_")


def stage_alarm(
    scope: Construct,
    construct_id: str,
    settings: Settings,
    text: AlarmText,
    metric: Drawable,
    threshold: float,
    *,
    drawn: Drawable | None = None,
    periods: int = 1,
    at_least: int | None = None,
    below: bool = False,
    missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
) -> None:
    """Make the alarm mailroom-{stage}-{subject}-{kind}, if the stage's level of monitoring has that kind. The
    stage's topics get a notice when the alarm begins and when it ends.

    The alarm rings if `metric` is at `threshold` or above (`below`: under it) in `at_least` of the last
    `periods`; by default in all of them. `missing` is the meaning of a period without data: idle, or unknown.
    `drawn` is the metric that dashboards draw in place of `metric`, such as one with a label: CloudFormation
    would get an alarm on a metric with a label as an alarm on an expression.

    CloudWatch takes a new alarm's first data for an end: the state goes from no data to OK. So ends have a
    topic of their own, and the first deployment fills no inbox with the ends of all alarms.
    """
    if not settings.monitoring.wants(text.kind):
        return
    name = settings.name(text.short)
    alarm = cloudwatch.Alarm(
        scope,
        construct_id,
        alarm_name=name,
        alarm_description=text.description,
        metric=metric,
        threshold=threshold,
        evaluation_periods=periods,
        datapoints_to_alarm=at_least,
        treat_missing_data=missing,
        comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD if below else None,
    )
    resource = alarm.node.default_child
    assert isinstance(resource, cloudwatch.CfnAlarm)
    resource.alarm_actions, resource.ok_actions = [topic_arn(settings, BEGUN)], [topic_arn(settings, ENDED)]
    by_name = cloudwatch.Alarm.from_alarm_name(scope, f"{construct_id}ByName", name)
    stage_alarms(alarm).append(StageAlarm(text, drawn or metric, threshold, by_name))
    if output := text.output:
        publish(alarm, **{f"{output}AlarmName": alarm.alarm_name, f"{output}AlarmArn": alarm.alarm_arn})


def topic_arn(settings: Settings, topic: str) -> str:
    """Return the ARN of a topic: the stack that has it shows what all others have, and is made last.
    CloudWatch looks for the topic when an alarm rings, not when it is made."""
    place = settings.deployment
    region, account = place.region or Aws.REGION, place.account or Aws.ACCOUNT_ID
    return f"arn:{Aws.PARTITION}:sns:{region}:{account}:{settings.name(topic)}"


def read_log(settings: Settings, function: str) -> str:
    """Return the command that shows the last hour of a function's log."""
    return f"aws logs tail /aws/lambda/{settings.name(function)} --since 1h"
