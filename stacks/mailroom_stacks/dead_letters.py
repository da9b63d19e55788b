"""Function that examines dead letters when an alarm begins, and periodically."""

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from mailroom.environment import DeadLettersSettings
from mailroom_stacks.constructs.function import FunctionSpec, HandlerFunction
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.logical_ids import hold_permissions
from mailroom_stacks.constructs.naming import StageStack
from mailroom_stacks.constructs.worker import Worker
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.settings import Settings


class DeadLettersStack(StageStack):
    """Function `dead-letters`, which receives dead letters and records their causes, but does not delete
    them."""

    def __init__(
        self, scope: Construct, settings: Settings, storage: MailboxStack, workers: Sequence[Worker]
    ) -> None:
        super().__init__(scope, settings, "dead-letters")
        function = self._function(settings, storage, workers)
        # EventBridge tries three times, and for an hour at most, to pass an event to Lambda: after an hour,
        # the next scheduled examination receives the same dead letters. Once Lambda has the event,
        # `max_event_age` of the function counts.
        target = targets.LambdaFunction(function, max_event_age=Duration.hours(1), retry_attempts=2)
        alarms = events.Rule(
            self,
            "Alarms",
            rule_name=settings.name("dead-letters-alarms"),
            description="Examines dead letters when the alarm of a dead-letter queue begins",
            # The pattern matches the alarms of dead-letter queues, which `Worker` creates. Stage names
            # contain no hyphen, so it matches only alarms of this stage.
            event_pattern=events.EventPattern(
                source=["aws.cloudwatch"],
                detail_type=["CloudWatch Alarm State Change"],
                detail={
                    "alarmName": events.Match.wildcard(settings.name("*-dlq-not-empty")),
                    "state": {"value": ["ALARM"]},
                },
            ),
            targets=[target],
        )
        schedule = events.Rule(
            self,
            "Schedule",
            rule_name=settings.name("dead-letters-schedule"),
            description="Examines dead letters that arrive while an alarm rings",
            schedule=events.Schedule.rate(Duration.minutes(settings.times.dead_letters_period // 60)),
            targets=[target],
        )
        for rule in (alarms, schedule):
            hold_permissions(rule, function)

    def _function(
        self, settings: Settings, storage: MailboxStack, workers: Sequence[Worker]
    ) -> lambda_.Function:
        look = ("ReceiveMessage", "ChangeMessageVisibility")
        return HandlerFunction(
            self,
            settings,
            FunctionSpec(
                function="dead-letters",
                timeout_seconds=settings.times.dead_letters_timeout,
                # Then the next scheduled examination receives the same dead letters.
                max_event_age=settings.times.dead_letters_period,
                remedy="The dead letters are not examined, so their causes stay unknown. They stay in "
                "their queues: fix the error in the log of dead-letters, and wait for its next invocation.",
                grants=[
                    Grant(
                        [f"sqs:{action}" for action in look],
                        [worker.dead_letters.queue_arn for worker in workers],
                    ),
                    # The function reads the causes of dead letters from the ledger, and marks their messages
                    # there.
                    Grant(["dynamodb:BatchGetItem", "dynamodb:UpdateItem"], [storage.ledger.table_arn]),
                ],
                environment=DeadLettersSettings(
                    **storage.common,
                    dead_letter_queues={
                        worker.work.dead_letter_name: worker.dead_letters.queue_url for worker in workers
                    },
                ),
            ),
        ).resource
