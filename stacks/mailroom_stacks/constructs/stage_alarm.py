"""Alarms: name, description, notifications, and the metric and threshold that dashboards draw."""

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
"""Names of the SNS topics for alarms that begin and for alarms that end."""
LONGEST_DESCRIPTION = 1024
"""Maximum number of characters that CloudWatch allows in a description."""
FIVE_MINUTES = 300
WARM_UP_MINUTES = 10
"""Minimum number of minutes after the deployment of an alarm for which missing data does not set it off:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-warm-up.html, read on 2026-11-29."""
Statistic = Literal["Sum", "Maximum", "p50", "p99"]
Drawable = cloudwatch.Metric | cloudwatch.MathExpression


def metric(
    namespace: str,
    name: str,
    statistic: Statistic,
    dimensions: Mapping[str, str] | None = None,
    period: int = FIVE_MINUTES,
) -> cloudwatch.Metric:
    """Build a metric of CloudWatch. `period` is the length of a data point in seconds.

    Dimensions are physical names instead of references. An alarm and both dashboards use the same metric, and
    with a reference their stacks would depend on each other.
    """
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        statistic=statistic,
        dimensions_map=dimensions,
        period=Duration.seconds(period),
    )


def counted(settings: Settings, function: str, name: str, statistic: Statistic = "Sum") -> cloudwatch.Metric:
    """Build a metric that the code of a function reports, such as Sent."""
    return metric("Mailroom", name, statistic, {"service": function, "stage": settings.stage})


def counted_of_channel(settings: Settings, channel: str, name: str, reason: str = "") -> cloudwatch.Metric:
    """Build a metric that the function `outcomes` reports for a channel, such as Failed: for all reasons, or
    for one."""
    dimensions = {"channel": channel, **({"reason": reason} if reason else {}), "stage": settings.stage}
    return metric("Mailroom", name, "Sum", dimensions)


@dataclass(frozen=True)
class AlarmText:
    """Name and description of an alarm."""

    kind: str
    """Kind of the alarm, such as dlq-not-empty: the end of its name, and the name of its page in
    docs/alarms."""
    meaning: str
    """Sentences that describe what has happened and what it means."""
    next_step: str
    """Next command or action, without a full stop."""
    subject: str = ""
    """Short name of what the alarm watches, such as a queue; empty for the whole stage or account."""
    page: str = ""
    """Name of the alarm's page in docs/alarms, if it differs from the kind. A warning has the page of its
    kind."""
    output: str = ""
    """Prefix of the names of the alarm's outputs; empty for an alarm without outputs."""

    @property
    def short(self) -> str:
        """Name of the alarm without the stage's name."""
        return f"{self.subject}-{self.kind}" if self.subject else self.kind

    @property
    def description(self) -> str:
        """Description of the alarm. Raises ValueError if it is longer than CloudWatch allows."""
        page = self.page or self.kind.removesuffix("-warning")
        text = f"{self.meaning} Next: {self.next_step}. See `mailroom docs {page}`."
        if len(text) > LONGEST_DESCRIPTION:
            raise ValueError(f"description of {self.short} over {LONGEST_DESCRIPTION} characters: {text}")
        return text


@dataclass(frozen=True)
class StageAlarm:
    """Alarm with metric and threshold. Dashboards draw both from here, so that a line in a dashboard is
    always the one of the alarm."""

    about: AlarmText
    metric: Drawable
    """Metric that dashboards draw: the alarm's own metric, or the argument `drawn` of `stage_alarm`."""
    threshold: float
    by_name: cloudwatch.IAlarm
    """Alarm, imported by its name. A reference would make the stack of a dashboard depend on the stack of the
    alarm."""

    def labelled(self) -> Drawable:
        """Return the metric with a label: the metric's own, or else the alarm's subject or kind."""
        return self.metric.with_(label=self.metric.label or self.about.subject or self.about.kind)

    def share(self) -> cloudwatch.MathExpression:
        """Return the metric as a percentage of the threshold, for graphs of alarms with different
        thresholds."""
        name = identifier(self.about.short)
        return cloudwatch.MathExpression(
            expression=f"100 * {name} / {self.threshold}",
            using_metrics={name: self.metric},
            label=self.about.subject or self.about.kind,
            period=self.metric.period,
        )


# Alarms by stage. A walk through the construct tree would not find all alarms and functions: if Python has
# released a construct, jsii returns it as an instance of its base class, so the walk would skip it without an
# error.
_alarms = WeakKeyDictionary[IConstruct, list[StageAlarm]]()


def stage_alarms(scope: IConstruct) -> list[StageAlarm]:
    """Return the alarms of the stage that `scope` is or belongs to."""
    return _alarms.setdefault(stage_of(scope), [])


def identifier(short_name: str) -> str:
    """Return a short name in the form of a metric's id, which is unique in a graph."""
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
    """Create the alarm mailroom-{stage}-{subject}-{kind}, if the stage's level of monitoring has alarms of
    that kind. The stage's topics get a notification when the alarm begins and when it ends.

    The alarm rings if `metric` is greater than or equal to `threshold` (with `below`: less) in `at_least` of
    the last `periods`; by default in all of them. `missing` is the treatment of periods without data. `drawn`
    is the metric that dashboards draw instead of `metric`, such as a metric with a label: an alarm on a
    metric with a label would become an alarm on an expression in CloudFormation.

    An alarm for which missing data is a fault has a warm-up, because a stage reports data only after its
    deployment.

    When a new alarm gets its first data, its state changes from no data to OK, as if it had ended. Ends
    therefore have a separate topic, so that the first deployment does not notify subscribers of the ends of
    all alarms.
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
    if missing == cloudwatch.TreatMissingData.BREACHING:
        minutes = max(WARM_UP_MINUTES, periods * int(metric.period.to_minutes()))
        resource.warm_up_configuration = cloudwatch.CfnAlarm.WarmUpConfigurationProperty(
            warm_up_period_duration_in_minutes=minutes
        )
    by_name = cloudwatch.Alarm.from_alarm_name(scope, f"{construct_id}ByName", name)
    stage_alarms(alarm).append(StageAlarm(text, drawn or metric, threshold, by_name))
    if output := text.output:
        publish(alarm, **{f"{output}AlarmName": alarm.alarm_name, f"{output}AlarmArn": alarm.alarm_arn})


def topic_arn(settings: Settings, topic: str) -> str:
    """Return the ARN of an alarm topic by name. The app creates the stack of the topics after the stacks
    whose alarms it shows, so these cannot refer to a topic. It is deployed before them."""
    place = settings.deployment
    region, account = place.region or Aws.REGION, place.account or Aws.ACCOUNT_ID
    return f"arn:{Aws.PARTITION}:sns:{region}:{account}:{settings.name(topic)}"


def read_log(settings: Settings, function: str) -> str:
    """Return the command that shows the last hour of a function's log."""
    return f"aws logs tail /aws/lambda/{settings.name(function)} --since 1h"
