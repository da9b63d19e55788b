"""Queue, dead-letter queue, function, the event source mapping between them, and their alarms."""

from dataclasses import dataclass, replace
from typing import Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_cloudwatch import Metric, TreatMissingData
from constructs import Construct
from msgspec import structs

from mailroom_stacks.constructs.function import FunctionSpec, HandlerFunction
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.naming import accept, pascal, publish
from mailroom_stacks.constructs.stage_alarm import AlarmText, metric, read_log, stage_alarm
from mailroom_stacks.settings.queues import DAY, DEAD_LETTER_DAYS, QueueRules
from mailroom_stacks.settings.settings import Settings
from mailroom_stacks.settings.waiting import waiting_seconds


@dataclass(frozen=True, kw_only=True)
class Work(FunctionSpec):
    """Properties of a queue and of the function that reads it. Worker sets the `queue_url` of
    `environment`."""

    queue: str
    """Short name of the queue, such as mail-bulk; for a FIFO queue without the suffix .fifo."""
    batch_size: int = 1
    """Maximum number of messages in one invocation. With one message, a slow message does not delay
    others."""
    window_seconds: int = 0
    """Batch window in seconds, for which Lambda waits for further messages. It is required for batches of
    more than ten."""
    maximum_concurrency: int = 2
    """Maximum number of functions at a time, at least two."""
    rules: QueueRules
    channel: str = ""
    """Event type of the messages that the function sends; empty if it sends none."""
    fifo: bool = False
    """Whether the queue is FIFO, so that messages of a group are received in order, one batch at a time."""

    @property
    def queue_name(self) -> str:
        """Name of the queue, without the prefix of the stage."""
        return f"{self.queue}.fifo" if self.fifo else self.queue

    @property
    def dead_letter_name(self) -> str:
        """Name of the dead-letter queue, such as mail-dlq. The dead-letter queue of a FIFO queue must be FIFO
        as well."""
        return f"{self.queue}-dlq.fifo" if self.fifo else f"{self.queue}-dlq"


CONSUME = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility")


class Worker(Construct):
    """Queue with dead-letter queue, function, mapping and alarms. All queues of a stage that functions read
    are created by this class."""

    def __init__(self, scope: Construct, settings: Settings, work: Work) -> None:
        super().__init__(scope, pascal(work.queue))
        self.work = work
        self.dead_letters = self._dead_letter_queue(settings, work)
        self.queue = self._queue(settings, work)
        self.function = self._function(settings, work)
        _not_empty(self, settings)
        _waiting_long(self, settings)
        _backlog_old(self, settings)
        _in_flight_many(self, settings)
        for kind, queue in (("Queue", self.queue), ("Dlq", self.dead_letters)):
            name = f"{pascal(work.queue)}{kind}"
            publish(self, **{f"{name}Url": queue.queue_url, f"{name}Arn": queue.queue_arn})

    def _dead_letter_queue(self, settings: Settings, work: Work) -> sqs.Queue:
        source = Stack.of(self).format_arn(service="sqs", resource=settings.name(work.queue_name))
        dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=settings.name(work.dead_letter_name),
            fifo=work.fifo or None,  # CloudFormation accepts true or no value
            retention_period=Duration.days(DEAD_LETTER_DAYS),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            # The policy contains the name of the source queue instead of a reference, because the two queues
            # would depend on each other.
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
        spec = replace(
            work,
            grants=[*work.grants, Grant([f"sqs:{action}" for action in CONSUME], [self.queue.queue_arn])],
            environment=structs.replace(work.environment, queue_url=self.queue.queue_url),
            comes_back_seconds=work.rules.visibility,
        )
        function = HandlerFunction(self, settings, spec).resource
        lambda_.EventSourceMapping(
            self,
            "Mapping",
            target=function,
            event_source_arn=self.queue.queue_arn,
            batch_size=work.batch_size,
            # For a FIFO queue, Lambda rejects a batch window, even one of 0 s.
            max_batching_window=None if work.fifo else Duration.seconds(work.window_seconds),
            max_concurrency=work.maximum_concurrency,
            report_batch_item_failures=True,
        )
        return function


def _order(work: Work) -> dict[str, Any]:
    """Return the properties of a FIFO queue, or an empty dictionary for a standard queue. Order,
    deduplication and throughput limit apply to each message group: the throughput grows with the number of
    groups, and the same body may be sent in two groups. Mailroom's functions set deduplication ids; producers
    need not."""
    if not work.fifo:
        return {}
    return {
        "fifo": True,
        "content_based_deduplication": True,
        "deduplication_scope": sqs.DeduplicationScope.MESSAGE_GROUP,
        "fifo_throughput_limit": sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
    }


IN_FLIGHT_MANY = 100_000
IN_FLIGHT_MOST = 120_000
"""Maximum number of messages in flight of a queue, FIFO or not. At this limit SQS returns no more messages,
and no error."""
MOST_HIDDEN_MINUTES = 6
"""Number of latest minutes in one of which a dead letter must have been visible. It is greater than the time
for which the commands and the function `dead-letters` hide letters."""
RECEIVED = " Messages that were received three times do not count."
"""Sentence for standard queues, from SQS's documentation of the metric of the oldest message's age."""


def _not_empty(worker: Worker, settings: Settings) -> None:
    """Create an alarm that rings while there is a dead letter, even if somebody has received it to look at
    it."""
    queue, function = worker.work.queue, worker.work.function
    stage = settings.stage
    text = AlarmText(
        subject=queue,
        kind="dlq-not-empty",
        meaning=f"{function} could not process messages: they are in the dead-letter queue of {queue}, which "
        f"keeps them for {DEAD_LETTER_DAYS} days. The cause is a fault of the configuration or code, "
        "of a provider or of AWS. The alarm rings until the queue is empty.",
        next_step=f"mailroom messages dead-letters --stage {stage} --queue {queue}, fix the cause, then "
        f"mailroom messages resend --dead-letters {queue} --stage {stage}",
        output=f"{pascal(queue)}Dlq",
    )
    letters = queue_metric(settings, worker.work.dead_letter_name, "ApproximateNumberOfMessagesVisible")
    # A queue without activity for hours reports no data, which must not end the alarm. The metric lacks
    # letters that somebody is looking at, which SQS hides for minutes.
    stage_alarm(
        worker,
        "NotEmpty",
        settings,
        text,
        letters.with_(period=Duration.minutes(1)),
        1,
        periods=MOST_HIDDEN_MINUTES,
        at_least=1,
        missing=TreatMissingData.IGNORE,
    )


def _waiting_long(worker: Worker, settings: Settings) -> None:
    queue, function = worker.work.queue, worker.work.function
    seconds = waiting_seconds(settings, queue)
    text = AlarmText(
        subject=queue,
        kind="waiting-long",
        meaning=f"The oldest message in {queue} has waited for over {seconds // 60} "
        f"minutes: {function} gets more messages than it may process, does not run, or fails."
        f"{'' if worker.work.fifo else RECEIVED}",
        next_step=f"mailroom doctor --stage {settings.stage}, then {read_log(settings, function)}",
    )
    # An empty queue reports no age, and the alarm does not ring.
    stage_alarm(worker, "WaitingLong", settings, text, _age(worker, settings), seconds)


def _backlog_old(worker: Worker, settings: Settings) -> None:
    """Create an alarm that rings before SQS deletes messages at the end of their retention. SQS deletes them
    without notice and without a dead letter."""
    queue = worker.work.queue
    days = settings.retention.days_of(fifo=worker.work.fifo)
    text = AlarmText(
        subject=queue,
        kind="backlog-old",
        meaning=f"The oldest message in {queue} has waited for half of the {days} days that "
        "SQS keeps it. After those days SQS deletes it, without a dead letter. Then the ledger has no "
        f"outcome of the message, so mailroom messages resend --stuck --stage {settings.stage} puts it back.",
        next_step=f"mailroom doctor --stage {settings.stage} (is the queue read?), raise the rate or the "
        f"concurrency, mailroom campaign list --stage {settings.stage} (stop campaigns), or pause the "
        "producer",
    )
    stage_alarm(worker, "BacklogOld", settings, text, _age(worker, settings), days * DAY // 2)


def _in_flight_many(worker: Worker, settings: Settings) -> None:
    """Create an alarm for the number of messages in flight, which include those that wait between two
    tries."""
    queue, function = worker.work.queue, worker.work.function
    text = AlarmText(
        subject=queue,
        kind="in-flight-many",
        meaning=f"Over {IN_FLIGHT_MANY:,} messages of {queue} are in flight, which includes messages that "
        f"wait for their next try. At {IN_FLIGHT_MOST:,}, SQS returns no more messages, and no error.",
        next_step=f"{read_log(settings, function)} (why messages are retried), and mailroom messages list "
        f"--status sending --stage {settings.stage}: end messages that always fail, or pause the producer",
    )
    in_flight = queue_metric(settings, worker.work.queue_name, "ApproximateNumberOfMessagesNotVisible")
    stage_alarm(worker, "InFlightMany", settings, text, in_flight, IN_FLIGHT_MANY)


def _age(worker: Worker, settings: Settings) -> Metric:
    return queue_metric(settings, worker.work.queue_name, "ApproximateAgeOfOldestMessage")


def queue_metric(settings: Settings, queue: str, name: str) -> Metric:
    """Build a metric that SQS reports for a queue."""
    return metric("AWS/SQS", name, "Maximum", {"QueueName": settings.name(queue)})
