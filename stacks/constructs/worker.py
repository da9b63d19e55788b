"""A queue, its dead-letter queue, its function, the mapping between them, and their alarms."""

from typing import Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.constructs.findings import accept
from stacks.constructs.function import HandlerFunction
from stacks.constructs.grants import Grant
from stacks.constructs.inventory import WatchedQueue, inventory
from stacks.constructs.outputs import pascal, publish
from stacks.constructs.queue_alarms import Watch, watch_queue
from stacks.constructs.work import Work
from stacks.settings.stage import Settings, waiting_seconds

__all__ = ["Work", "Worker"]


class Worker(Construct):
    """Every queue of the system is made here, so that none lacks what the others have."""

    def __init__(self, scope: Construct, settings: Settings, work: Work) -> None:
        super().__init__(scope, pascal(work.queue))
        self.dead_letter_name = work.dead_letter_name
        """The dead-letter queue's name, still without the stage's: mail-dlq, fax-dlq.fifo."""
        self.dead_letters = self._dead_letter_queue(settings, work)
        self.queue = self._queue(settings, work)
        self.function = self._function(settings, work)
        self._watch(settings, work)
        self._publish(pascal(work.queue))

    def _dead_letter_queue(self, settings: Settings, work: Work) -> sqs.Queue:
        source = Stack.of(self).format_arn(service="sqs", resource=settings.name(work.queue_name))
        dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=settings.name(work.dead_letter_name),
            fifo=work.fifo or None,  # CloudFormation takes true or nothing
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
            queue_name=settings.name(work.queue_name),
            **_order(work),
            visibility_timeout=Duration.seconds(work.rules.visibility),
            retention_period=Duration.days(settings.retention.days_of(fifo=work.fifo)),
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
            extras=work.extras,
            recursive=work.recursive,
            network=work.network,
            comes_back_seconds=work.rules.visibility,
            kept_back_seconds=work.kept_back_seconds,
        ).resource
        lambda_.EventSourceMapping(
            self,
            "Mapping",
            target=function,
            event_source_arn=self.queue.queue_arn,
            batch_size=work.polling.batch_size,
            # Lambda refuses a window, even of 0 s, on a FIFO queue.
            max_batching_window=None if work.fifo else Duration.seconds(work.polling.batch_window_seconds),
            max_concurrency=work.polling.maximum_concurrency,
            report_batch_item_failures=True,
        )
        return function

    def _watch(self, settings: Settings, work: Work) -> None:
        waiting = waiting_seconds(settings, work.queue)
        watch = Watch(
            queue=self.queue,
            dead_letters=self.dead_letters,
            short=work.queue,
            function=work.function,
            waiting_seconds=waiting,
            kept_days=settings.retention.days_of(fifo=work.fifo),
        )
        watch_queue(self, settings, watch)
        watched = WatchedQueue(
            short=work.queue,
            name=settings.name(work.queue_name),
            dead_letters=settings.name(work.dead_letter_name),
            function=work.function,
            channel=work.channel,
            waiting_seconds=waiting,
        )
        inventory(self).queues.append(watched)

    def _consume(self) -> Grant:
        actions = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility")
        return Grant([f"sqs:{action}" for action in actions], [self.queue.queue_arn])

    def _publish(self, name: str) -> None:
        publish(
            self,
            **{
                f"{name}QueueUrl": self.queue.queue_url,
                f"{name}QueueArn": self.queue.queue_arn,
                f"{name}DlqUrl": self.dead_letters.queue_url,
                f"{name}DlqArn": self.dead_letters.queue_arn,
            },
        )


def _order(work: Work) -> dict[str, Any]:
    """What makes a queue FIFO, each group for itself: as fast as there are groups, and a body that one
    group had may come again in another."""
    if not work.fifo:
        return {}
    return {
        "fifo": True,
        "deduplication_scope": sqs.DeduplicationScope.MESSAGE_GROUP,
        "fifo_throughput_limit": sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
    }
