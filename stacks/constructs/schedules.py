"""Where a `send_at` beyond a queue's delay is kept: EventBridge schedules, and the role they send with."""

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from stacks.constructs.grants import Grant, policy
from stacks.settings.stage import Settings


class Schedules(Construct):
    """Schedules of this group may send to the `scheduled` queue, or else to its dead-letter queue."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, "Schedules")
        stack = Stack.of(self)
        self.group = scheduler.CfnScheduleGroup(self, "Group", name=settings.name())
        # By name, not by reference: the queue's function has this role in its environment.
        self.target_arn = stack.format_arn(service="sqs", resource=settings.name("scheduled"))
        self.dead_letter_arn = stack.format_arn(service="sqs", resource=settings.name("scheduled-dlq"))
        self._schedules_arn = stack.format_arn(
            service="scheduler", resource="schedule", resource_name=f"{settings.name()}/*"
        )
        self.role = self._role(stack, settings)

    def environment(self) -> dict[str, str]:
        """What a function that creates schedules needs to know."""
        return {
            "SCHEDULE_GROUP": str(self.group.name),
            "SCHEDULE_ROLE_ARN": self.role.role_arn,
            "SCHEDULE_TARGET_ARN": self.target_arn,
            "SCHEDULE_DEAD_LETTER_ARN": self.dead_letter_arn,
        }

    def create(self) -> list[Grant]:
        """What a function needs to create schedules of this group."""
        return [
            Grant(
                ["scheduler:CreateSchedule"],
                [self._schedules_arn],
                wildcard="A schedule's name is derived from its message; the group is this stage's own.",
            ),
            Grant(
                ["iam:PassRole"],
                [self.role.role_arn],
                conditions={"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
            ),
        ]

    def _role(self, stack: Stack, settings: Settings) -> iam.Role:
        group = stack.format_arn(
            service="scheduler", resource="schedule-group", resource_name=settings.name()
        )
        trusted = iam.ServicePrincipal(
            "scheduler.amazonaws.com",
            conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID, "aws:SourceArn": group}},
        )
        return iam.Role(
            self,
            "Role",
            assumed_by=trusted,
            inline_policies=policy([Grant(["sqs:SendMessage"], [self.target_arn, self.dead_letter_arn])]),
        )
