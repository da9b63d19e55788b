"""The schedules that start campaigns, a group of them a stage."""

import json
from collections.abc import Sequence

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from stacks.constructs.grants import Grant, policy
from stacks.constructs.worker import Worker
from stacks.settings.campaign import Schedule
from stacks.settings.enabled_campaigns import EnabledCampaign
from stacks.settings.stage import Settings

LATEST_SECONDS = 3_600
"""A start that could not be sent for an hour waits in the dead-letter queue for somebody to decide."""
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
"""What EventBridge Scheduler puts its own time for: a start that it sends twice has the same."""


class CampaignSchedules(Construct):
    """Each sends its campaign's name and the time to the collect queue, or else to its dead-letter queue."""

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        collect: Worker,
        campaigns: Sequence[EnabledCampaign],
    ) -> None:
        super().__init__(scope, "Schedules")
        self._collect = collect
        name = settings.name("campaigns")
        self._group = scheduler.CfnScheduleGroup(self, "Group", name=name)
        self._role = self._trusted_role(name)
        for campaign in campaigns:
            if campaign.chosen.schedule:
                self._schedule(campaign.name, campaign.chosen.schedule)

    def _trusted_role(self, name: str) -> iam.Role:
        group = Stack.of(self).format_arn(service="scheduler", resource="schedule-group", resource_name=name)
        queues = (self._collect.queue, self._collect.dead_letters)
        return iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID, "aws:SourceArn": group}},
            ),
            inline_policies=policy([Grant(["sqs:SendMessage"], [queue.queue_arn for queue in queues])]),
        )

    def _schedule(self, campaign: str, schedule: Schedule) -> None:
        kind = scheduler.CfnSchedule
        made = kind(
            self,
            f"Schedule-{campaign}",
            name=campaign,
            group_name=self._group.name,
            description=f"Starts the campaign {campaign}",
            schedule_expression=f"cron({schedule.cron})",
            schedule_expression_timezone=schedule.time_zone,
            flexible_time_window=kind.FlexibleTimeWindowProperty(mode="OFF"),
            target=kind.TargetProperty(
                arn=self._collect.queue.queue_arn,
                role_arn=self._role.role_arn,
                input=json.dumps({"campaign": campaign, "scheduled_at": SCHEDULED_TIME}),
                retry_policy=kind.RetryPolicyProperty(maximum_event_age_in_seconds=LATEST_SECONDS),
                dead_letter_config=kind.DeadLetterConfigProperty(arn=self._collect.dead_letters.queue_arn),
            ),
        )
        made.add_resource_dependency(self._group)
