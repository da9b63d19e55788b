"""An alarm: its name, its words, and whom it tells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

from aws_cdk import Aws, Duration, Stage
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct, IConstruct

from mailroom_stacks.constructs.stage import pascal, publish
from mailroom_stacks.settings.stage import Settings

# Neither alarms nor functions are found by walking the tree: jsii hands out a construct that Python no longer
# holds as one of its base class, which would then be missing without a word.
_kinds = WeakKeyDictionary[IConstruct, dict[str, str]]()


def alarm_kinds(scope: IConstruct) -> dict[str, str]:
    """The kind of each alarm in the stage that `scope` belongs to, by the alarm's name."""
    return _kinds.setdefault(Stage.of(scope) or scope.node.root, {})


BEGUN, ENDED = "alarms", "alarms-ended"
"""The topics that hear when an alarm begins, and when it ends."""
LONGEST_DESCRIPTION = 1024
"""CloudWatch takes no longer one."""
FIVE_MINUTES = 300


def metric(
    namespace: str,
    name: str,
    statistic: Literal["Sum", "Maximum", "Average"],
    dimensions: Mapping[str, str] | None = None,
    period: int = FIVE_MINUTES,
) -> cloudwatch.Metric:
    """A metric of one thing; `period` is the seconds that one data point is about."""
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        statistic=statistic,
        dimensions_map=dimensions,
        period=Duration.seconds(period),
    )


@dataclass(frozen=True)
class AlarmText:
    """What an alarm is called, and says."""

    kind: str
    """The end of its name, such as dlq-not-empty, and what its page is called."""
    meaning: str
    """Sentences: what has happened, and what that means."""
    next_step: str
    """What to run or to do next, without a full stop."""
    subject: str = ""
    """The short name of what it watches; "": the stage, or the account."""
    page: str = ""
    """The page below docs/operating where another than the kind's."""
    output: str = ""
    """What its outputs' names begin with; "" derives it from subject and kind."""

    @property
    def short(self) -> str:
        """The alarm's name without the stage's."""
        return f"{self.subject}-{self.kind}" if self.subject else self.kind

    @property
    def description(self) -> str:
        """What it says. Raises ValueError where that is longer than CloudWatch takes."""
        text = f"{self.meaning} Next: {self.next_step}. See docs/operating/{self.page or self.kind}.md."
        if len(text) > LONGEST_DESCRIPTION:
            raise ValueError(f"the description of {self.short} has {len(text)} characters: {text}")
        return text


def stage_alarm(
    scope: Construct,
    construct_id: str,
    settings: Settings,
    about: AlarmText,
    metric: cloudwatch.IMetric,
    threshold: float,
    *,
    periods: int = 1,
    at_least: int | None = None,
    missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
) -> None:
    """An alarm named mailroom-{stage}-{subject}-{kind}, where the stage's level of monitoring has that kind.
    The alarm tells the stage's topics when it begins and when it ends.

    It rings when `metric` is at `threshold` or above in `at_least` (None: all) of the last `periods`.
    `missing` is what a period without data means: that nothing happened, or that nothing is known.

    An alarm that is made ends as well, for CloudWatch: it goes from no data to OK. So what ends has a topic
    of its own, and nobody's inbox is full of all alarms after the first deployment.
    """
    if not settings.monitoring.wants(about.kind):
        return
    name = settings.name(about.short)
    alarm = cloudwatch.Alarm(
        scope,
        construct_id,
        alarm_name=name,
        alarm_description=about.description,
        metric=metric,
        threshold=threshold,
        evaluation_periods=periods,
        datapoints_to_alarm=at_least,
        treat_missing_data=missing,
    )
    resource = alarm.node.default_child
    assert isinstance(resource, cloudwatch.CfnAlarm)
    resource.alarm_actions, resource.ok_actions = [_topic_arn(settings, BEGUN)], [_topic_arn(settings, ENDED)]
    alarm_kinds(alarm)[name] = about.kind
    output = about.output or pascal(about.short)
    publish(alarm, **{f"{output}AlarmName": alarm.alarm_name, f"{output}AlarmArn": alarm.alarm_arn})


def _topic_arn(settings: Settings, topic: str) -> str:
    """A topic, by name: the stack that has it shows what all others have, and is made last. CloudWatch looks
    for the topic when an alarm rings, not when it is made."""
    return f"arn:{Aws.PARTITION}:sns:{Aws.REGION}:{Aws.ACCOUNT_ID}:{settings.name(topic)}"


def read_log(settings: Settings, function: str) -> str:
    """The command that shows the last hour of a function's log."""
    return f"aws logs tail /aws/lambda/{settings.name(function)} --since 1h"
