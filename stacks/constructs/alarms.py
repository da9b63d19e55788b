"""An alarm: its name, its words, and whom it tells; and the inventory of what is watched."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from weakref import WeakKeyDictionary

from aws_cdk import Aws
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct, IConstruct

from stacks.constructs.stage import pascal, publish
from stacks.settings.stage import Settings


@dataclass(frozen=True)
class WatchedQueue:
    """A queue with its dead-letter queue. Names without "short" are whole, the stage's included."""

    short: str
    """Such as mail-bulk, fax."""
    name: str
    dead_letters: str
    function: str
    """The short name of the function that reads it."""
    channel: str
    """The event type whose messages that function sends; "": it sends none."""
    waiting_seconds: int
    """From this age of the oldest message on, an alarm rings."""


@dataclass(frozen=True)
class WatchedFunction:
    """A function."""

    short: str
    name: str
    timeout_seconds: int
    slow_seconds: float
    """From this duration on, an alarm rings."""


@dataclass(frozen=True)
class WatchedApi:
    """An HTTP API; its metrics go by an id that only its own stack knows."""

    name: str
    log_group: str
    """Where each request has its line."""


@dataclass(frozen=True)
class WatchedAlarm:
    """An alarm."""

    name: str
    kind: str
    """Such as dlq-not-empty: the end of its name, and what its page is called."""


@dataclass
class Inventory:
    """Everything of one app."""

    queues: list[WatchedQueue] = field(default_factory=list)
    functions: list[WatchedFunction] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    """Short names of the functions that read a table's stream."""
    apis: list[WatchedApi] = field(default_factory=list)
    alarms: list[WatchedAlarm] = field(default_factory=list)


# Not found by walking the tree: jsii hands out a construct that Python no longer holds as one of its base
# class, which would then be missing without a word.
_inventories: WeakKeyDictionary[IConstruct, Inventory] = WeakKeyDictionary()


def inventory(scope: IConstruct) -> Inventory:
    """The inventory of the app that `scope` belongs to."""
    return _inventories.setdefault(scope.node.root, Inventory())


BEGUN, ENDED = "alarms", "alarms-ended"
"""The topics that hear when an alarm begins, and when it ends."""
LONGEST_DESCRIPTION = 1024
"""CloudWatch takes no longer one."""
FIVE_MINUTES = 300


@dataclass(frozen=True)
class Metric:
    """A metric of one thing, as CloudWatch has it."""

    namespace: str
    name: str
    statistic: Literal["Sum", "Maximum", "Average"]
    dimensions: Mapping[str, str] = field(default_factory=dict)
    period: int = FIVE_MINUTES
    """Seconds that one data point is about."""


@dataclass(frozen=True)
class Trigger:
    """When an alarm rings: its metric, or the sum of several, is at `threshold` or above."""

    metrics: Mapping[str, Metric]
    """One; or several under the names that they have in the sum."""
    threshold: float
    periods: int = 1
    """How many of the last periods are looked at."""
    at_least: int = 0
    """In how many of those it is reached; 0: in all of them."""
    missing: Literal["notBreaching", "ignore"] = "notBreaching"
    """What a period without data means: that nothing happened, or that nothing is known."""

    def properties(self) -> dict[str, Any]:
        """CloudFormation's words for it."""
        of_any = {
            "comparison_operator": "GreaterThanOrEqualToThreshold",
            "threshold": self.threshold,
            "evaluation_periods": self.periods,
            "datapoints_to_alarm": self.at_least or None,
            "treat_missing_data": self.missing,
        }
        if len(self.metrics) > 1:
            query = cloudwatch.CfnAlarm.MetricDataQueryProperty
            total = query(id="sum", expression=" + ".join(self.metrics), return_data=True)
            return {**of_any, "metrics": [*map(_query, self.metrics, self.metrics.values()), total]}
        (metric,) = self.metrics.values()
        return {
            **of_any,
            "namespace": metric.namespace,
            "metric_name": metric.name,
            "dimensions": _dimensions(metric),
            "statistic": metric.statistic,
            "period": metric.period,
        }


@dataclass(frozen=True)
class AlarmText:
    """What an alarm is called, and says."""

    kind: str
    """Such as dlq-not-empty."""
    meaning: str
    """Sentences: what has happened, and what that means."""
    look: str
    """What to run or to do next, without a full stop."""
    subject: str = ""
    """The short name of what it watches; "": the stage, or the account."""
    page: str = ""
    """The page below docs/operating where another than the kind's."""
    output: str = ""
    """What its outputs' names begin with; "" derives it from subject and kind."""

    @property
    def short(self) -> str:
        """Its name without the stage's."""
        return f"{self.subject}-{self.kind}" if self.subject else self.kind

    @property
    def description(self) -> str:
        """What it says. Raises ValueError where that is longer than CloudWatch takes."""
        text = f"{self.meaning} Next: {self.look}. See docs/operating/{self.page or self.kind}.md."
        if len(text) > LONGEST_DESCRIPTION:
            raise ValueError(f"the description of {self.short} has {len(text)} characters: {text}")
        return text


class StageAlarm(Construct):
    """Named mailroom-{stage}-{subject}-{kind}; tells the stage's topics when it begins and when it ends.

    An alarm that is made ends as well, for CloudWatch: it goes from no data to OK. So what ends has a topic
    of its own, and nobody's inbox is full of all alarms after the first deployment.
    """

    def __init__(
        self, scope: Construct, construct_id: str, settings: Settings, about: AlarmText, trigger: Trigger
    ) -> None:
        super().__init__(scope, construct_id)
        self.alarm_name = settings.name(about.short)
        alarm = cloudwatch.CfnAlarm(
            self,
            "Resource",
            alarm_name=self.alarm_name,
            alarm_description=about.description,
            alarm_actions=[_topic_arn(settings, BEGUN)],
            ok_actions=[_topic_arn(settings, ENDED)],
            **trigger.properties(),
        )
        inventory(self).alarms.append(WatchedAlarm(self.alarm_name, about.kind))
        output = about.output or pascal(about.short)
        publish(self, **{f"{output}AlarmName": alarm.ref, f"{output}AlarmArn": alarm.attr_arn})


def _topic_arn(settings: Settings, topic: str) -> str:
    """A topic, by name: the stack that has it shows what all others have, and comes last. CloudWatch looks
    for the topic when an alarm rings, not when it is made."""
    return f"arn:{Aws.PARTITION}:sns:{Aws.REGION}:{Aws.ACCOUNT_ID}:{settings.name(topic)}"


def read_log(settings: Settings, function: str) -> str:
    """The command that shows the last hour of a function's log."""
    return f"aws logs tail /aws/lambda/{settings.name(function)} --since 1h"


def _query(name: str, metric: Metric) -> cloudwatch.CfnAlarm.MetricDataQueryProperty:
    kind = cloudwatch.CfnAlarm
    return kind.MetricDataQueryProperty(
        id=name,
        metric_stat=kind.MetricStatProperty(
            metric=kind.MetricProperty(
                namespace=metric.namespace, metric_name=metric.name, dimensions=_dimensions(metric)
            ),
            period=metric.period,
            stat=metric.statistic,
        ),
        return_data=False,
    )


def _dimensions(metric: Metric) -> list[cloudwatch.CfnAlarm.DimensionProperty] | None:
    kind = cloudwatch.CfnAlarm.DimensionProperty
    return [kind(name=name, value=value) for name, value in metric.dimensions.items()] or None
