"""Topics that alarms notify, alarms of the whole stage, and dashboards."""

from collections.abc import Sequence

from aws_cdk import Aws, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from mailroom_stacks.constructs.day_alarms import watch_days
from mailroom_stacks.constructs.fallback_alarm import watch_fallbacks
from mailroom_stacks.constructs.function import function_specs
from mailroom_stacks.constructs.naming import StageStack, name_for_others, publish
from mailroom_stacks.constructs.objective import watch_objective
from mailroom_stacks.constructs.outcome_alarms import watch_outcomes
from mailroom_stacks.constructs.second_copy import GROUP
from mailroom_stacks.constructs.stage_alarm import BEGUN, ENDED, AlarmText, identifier, metric, stage_alarm
from mailroom_stacks.constructs.topic import EventTopic, event_key
from mailroom_stacks.constructs.worker import Work
from mailroom_stacks.dashboard.overview import overview
from mailroom_stacks.settings.concurrency import FUNCTIONS_AT_ONCE, functions_at_once
from mailroom_stacks.settings.enabled_campaigns import EnabledCampaign
from mailroom_stacks.settings.monitoring import NEARLY_ALL
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.settings.settings import Settings

MINUTES_IN_A_ROW = 5


class MonitoringStack(StageStack):
    """Topics, alarms of the whole stage and of the account, and dashboards. The stack is created last,
    because dashboards show the parts of all other stacks, and deployed first: it uses only the names of those
    parts."""

    def __init__(
        self, scope: Construct, settings: Settings, campaigns: Sequence[EnabledCampaign] = ()
    ) -> None:
        super().__init__(scope, settings, "monitoring")
        begins, ends = self._topics(settings)
        at_once = sum(functions_at_once(settings, campaigns).values())
        self._concurrency(settings, at_once)
        watch_outcomes(Construct(self, "Outcomes"), settings)
        watch_days(Construct(self, "Days"), settings)
        watch_fallbacks(Construct(self, "Fallbacks"), settings)
        if settings.monitoring.canary:
            watch_objective(Construct(self, "Objective"), settings)
        self._drops(settings)
        _known_queues(self, settings)
        if settings.monitoring.is_full:
            _dashboard(self, "Dashboard", settings.name(), overview(self, settings))
            publish(self, DashboardName=settings.name())
        publish(
            self,
            AlarmTopicName=begins.topic_name,
            AlarmTopicArn=begins.topic_arn,
            AlarmEndedTopicName=ends.topic_name,
            AlarmEndedTopicArn=ends.topic_arn,
            **{FUNCTIONS_AT_ONCE: f"{at_once}"},
        )
        topics = {"alarm-topic": begins.topic_arn, "alarm-ended-topic": ends.topic_arn}
        name_for_others(self, settings, topics)

    def _topics(self, settings: Settings) -> tuple[EventTopic, EventTopic]:
        """Create the topics for alarms that begin and for alarms that end. People subscribe to the first.
        Programs need both: an incident that is never closed would hide the next alarm with the same name."""
        key = event_key(self, settings)
        begins = EventTopic(self, "Alarms", settings, name=BEGUN, key=key)
        ends = EventTopic(self, "AlarmsEnded", settings, name=ENDED, key=key)
        alarms = f"arn:{Aws.PARTITION}:cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:alarm:{settings.name('*')}"
        for topic in (begins, ends):
            topic.let_publish("cloudwatch", alarms)
        # Each new alarm changes from no data to OK, which needs no notification: a new stage has about 80
        # alarms. No alarm of a stage changes from ALARM to no data, because each defines the treatment of
        # missing data.
        rang = sns.FilterOrPolicy.filter(sns.SubscriptionFilter.string_filter(allowlist=["ALARM"]))
        # Events of AWS Health do not have the field AlarmName, so the filter keeps them from the URLs: an
        # incident service would open an incident for such an event, and no end of an alarm would close it.
        alarm = sns.FilterOrPolicy.filter(sns.SubscriptionFilter.exists_filter())
        for url in settings.monitoring.urls:
            begins.add_subscription(
                subscriptions.UrlSubscription(url, filter_policy_with_message_body={"AlarmName": alarm})
            )
            ends.add_subscription(
                subscriptions.UrlSubscription(url, filter_policy_with_message_body={"OldStateValue": rang})
            )
        if settings.monitoring.is_full:
            _tell_of_health(self, settings, begins)
        for address in settings.monitoring.emails:
            begins.add_subscription(subscriptions.EmailSubscription(address))
        return begins, ends

    def _concurrency(self, settings: Settings, at_once: int) -> None:
        quota = settings.monitoring.concurrency_quota
        text = AlarmText(
            kind="concurrency",
            meaning=f"{NEARLY_ALL:.0%} of the {quota:,} functions that this account may run at a time in "
            "this region are in use, by all applications together. At the quota, Lambda throttles functions. "
            f"This stage may run {at_once:,} at a time, besides those of its HTTP API.",
            next_step="aws lambda get-account-settings, then raise the quota in Service Quotas and "
            "monitoring.concurrency_quota, or lower maximum_concurrency (mailroom cost --stage "
            f"{settings.stage} mail=100000)",
        )
        claimed = metric("AWS/Lambda", "ClaimedAccountConcurrency", "Maximum", period=60)
        many = settings.monitoring.many_functions
        stage_alarm(self, "Concurrency", settings, text, claimed, many, periods=MINUTES_IN_A_ROW)

    def _drops(self, settings: Settings) -> None:
        """Create one alarm for everything that AWS services drop between the parts of a stage and report only
        as a metric. Separate alarms would cost the same, because CloudWatch charges for each metric of an
        alarm."""
        failed = "NumberOfNotificationsFailed"
        rules = ["release", "dead-letters-alarms", "dead-letters-schedule", "health"]
        rules += ["canary"] if settings.monitoring.canary else []
        dropped = {
            # This metric counts all functions of the account, because no function of a stage is in a loop
            # that Lambda ends.
            "loops": metric("AWS/Lambda", "RecursiveInvocationsDropped", "Sum"),
            **{
                identifier(rule): metric(
                    "AWS/Events", "FailedInvocations", "Sum", {"RuleName": settings.name(rule)}
                )
                for rule in rules
            },
            "events": metric("AWS/SNS", failed, "Sum", {"TopicName": settings.name("feedback")}),
            "notices": metric("AWS/SNS", failed, "Sum", {"TopicName": settings.name(BEGUN)}),
        }
        if settings.deployment.second_copy:
            group = {"ScheduleGroup": settings.name(GROUP)}
            dropped["exports"] = metric("AWS/Scheduler", "TargetErrorCount", "Sum", group)
        text = AlarmText(
            kind="aws-drops",
            meaning="AWS lost an event: SNS dropped a provider's event or the notification of an alarm, "
            "EventBridge could not deliver an event of one of the stage's rules or start an export of the "
            "second copy, or Lambda dropped an invocation that it considers a loop. A policy or key has "
            "probably changed since the deployment.",
            next_step=f"mailroom doctor --stage {settings.stage} (what is missing?)",
        )
        total = cloudwatch.MathExpression(
            expression=f"SUM([{', '.join(dropped)}])", using_metrics=dropped, label="dropped"
        )
        stage_alarm(self, "Drops", settings, text, total, 1)


def _dashboard(stack: Stack, construct_id: str, name: str, rows: list[list[cloudwatch.IWidget]]) -> None:
    """Create a dashboard that shows a day, in which each graph keeps its own period."""
    dashboard = cloudwatch.Dashboard(
        stack,
        construct_id,
        dashboard_name=name,
        widgets=rows,
        default_interval=Duration.days(1),
        period_override=cloudwatch.PeriodOverride.INHERIT,
    )
    resource = dashboard.node.default_child
    assert isinstance(resource, cloudwatch.CfnDashboard)
    # With another logical id, CloudFormation would create a new dashboard with the same name, and then delete
    # it together with the old one.
    resource.override_logical_id(construct_id)


def _known_queues(stack: StageStack, settings: Settings) -> None:
    """Raise SettingsError if a setting names a queue that the stage does not have."""
    queues = sorted(spec.queue for spec in function_specs(stack) if isinstance(spec, Work))
    for name in settings.monitoring.waiting_minutes:
        if name not in queues:
            raise SettingsError(
                f"mailroom.{settings.stage}.monitoring.waiting_minutes.{name}: is not a queue of this stage; "
                f"use one of {', '.join(queues)}."
            )


HEALTH_SERVICES = ("APIGATEWAY", "DYNAMODB", "EVENTS", "KMS", "LAMBDA", "S3", "SES", "SNS", "SQS")
"""Services that a stage uses, by their names in AWS Health."""


def _tell_of_health(stack: Stack, settings: Settings, topic: EventTopic) -> None:
    """Create the rule that publishes AWS Health's events about HEALTH_SERVICES in this account and region to
    `topic`."""
    name = settings.name("health")
    alarms = events.CfnRule.TargetProperty(id="Alarms", arn=topic.topic_arn)
    pattern = {"source": ["aws.health"], "detail": {"service": [*HEALTH_SERVICES]}}
    events.CfnRule(stack, "Health", name=name, event_pattern=pattern, targets=[alarms])
    rule_arn = stack.format_arn(service="events", resource="rule", resource_name=name)
    topic.let_publish("events", rule_arn)
