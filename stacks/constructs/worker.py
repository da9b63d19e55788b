"""A queue, its dead-letter queue with an alarm, its function, and the mapping between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.constructs.findings import accept
from stacks.constructs.function import HandlerFunction
from stacks.constructs.grants import Grant
from stacks.constructs.outputs import pascal, publish
from stacks.derived import DAY, QueueRules
from stacks.settings import Function, Polling, Settings


@dataclass(frozen=True)
class Work:
    """Which queue a worker reads, what runs for it, and the numbers of both."""

    queue: str
    """Short name, such as mail-bulk."""
    function: str
    """Short name, such as send-mail-bulk."""
    handler: str
    """The file in lambdas/, without its ending."""
    limits: Function
    polling: Polling
    rules: QueueRules
    grants: Sequence[Grant]
    environment: Mapping[str, str]
    templates: bool = False


class Worker(Construct):
    """Every queue of the system is made here, so that none lacks what the others have."""

    def __init__(self, scope: Construct, settings: Settings, work: Work) -> None:
        super().__init__(scope, pascal(work.queue))
        self.dead_letters = self._dead_letter_queue(settings, work)
        self.queue = self._queue(settings, work)
        self.function = self._function(settings, work)
        self.alarm = self._alarm(settings.name(f"{work.queue}-dlq-not-empty"))
        self._age_alarm(settings, settings.name(f"{work.queue}-backlog-old"))
        self._publish(pascal(work.queue))

    def _dead_letter_queue(self, settings: Settings, work: Work) -> sqs.Queue:
        source = Stack.of(self).format_arn(service="sqs", resource=settings.name(work.queue))
        dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=settings.name(f"{work.queue}-dlq"),
            retention_period=Duration.days(settings.retention.dead_letter_days),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            # By name, not by reference: the two queues would otherwise wait for each other.
            redrive_allow_policy=sqs.RedriveAllowPolicy(
                redrive_permission=sqs.RedrivePermission.BY_QUEUE,
                source_queues=[sqs.Queue.from_queue_arn(self, "Source", source)],
            ),
        )
        accept(dead_letters, "SQS3", "It is a dead-letter queue itself.")
        return dead_letters

    def _queue(self, settings: Settings, work: Work) -> sqs.Queue:
        return sqs.Queue(
            self,
            "Queue",
            queue_name=settings.name(work.queue),
            visibility_timeout=Duration.seconds(work.rules.visibility),
            retention_period=Duration.days(settings.retention.queue_days),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=work.rules.max_receives
            ),
        )

    def _function(self, settings: Settings, work: Work) -> lambda_.Function:
        function = HandlerFunction(
            self,
            settings,
            name=work.function,
            handler=work.handler,
            limits=work.limits,
            grants=[*work.grants, self._consume()],
            environment={"QUEUE_URL": self.queue.queue_url, **work.environment},
            templates=work.templates,
        ).resource
        lambda_.EventSourceMapping(
            self,
            "Mapping",
            target=function,
            event_source_arn=self.queue.queue_arn,
            batch_size=work.polling.batch_size,
            max_batching_window=Duration.seconds(work.polling.batch_window_seconds),
            max_concurrency=work.polling.maximum_concurrency,
            report_batch_item_failures=True,
        )
        return function

    def _consume(self) -> Grant:
        actions = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility")
        return Grant([f"sqs:{action}" for action in actions], [self.queue.queue_arn])

    def _alarm(self, name: str) -> cloudwatch.Alarm:
        waiting = {
            "visible": self.dead_letters.metric_approximate_number_of_messages_visible(),
            "hidden": self.dead_letters.metric_approximate_number_of_messages_not_visible(),
        }
        return cloudwatch.Alarm(
            self,
            "NotEmpty",
            alarm_name=name,
            alarm_description="Dead letters wait: find the cause, then redrive them.",
            metric=cloudwatch.MathExpression(
                expression="visible + hidden",
                label="dead letters",
                period=Duration.minutes(1),
                using_metrics={**waiting},
            ),
            threshold=1,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            # A queue that nobody touches for hours reports nothing: that must not end the alarm.
            treat_missing_data=cloudwatch.TreatMissingData.IGNORE,
        )

    def _age_alarm(self, settings: Settings, name: str) -> None:
        """SQS deletes what is past its retention, silently and past the dead-letter queue."""
        cloudwatch.Alarm(
            self,
            "BacklogOld",
            alarm_name=name,
            alarm_description="Messages wait for half of the queue's retention: past all of it they go.",
            metric=self.queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(5)),
            threshold=settings.retention.queue_days * DAY // 2,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        )

    def _publish(self, name: str) -> None:
        publish(
            self,
            **{
                f"{name}QueueUrl": self.queue.queue_url,
                f"{name}QueueArn": self.queue.queue_arn,
                f"{name}DlqUrl": self.dead_letters.queue_url,
                f"{name}DlqArn": self.dead_letters.queue_arn,
                f"{name}DlqAlarmName": self.alarm.alarm_name,
                f"{name}DlqAlarmArn": self.alarm.alarm_arn,
            },
        )
