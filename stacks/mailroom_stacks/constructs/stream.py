"""Function that reads a table's stream, the bucket for records on which it gives up, and their alarms."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_cloudwatch import Metric, TreatMissingData
from constructs import Construct

from mailroom_stacks.constructs.function import FunctionSpec, HandlerFunction, function_metric
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.naming import pascal, publish
from mailroom_stacks.constructs.stage_alarm import AlarmText, metric, read_log, stage_alarm
from mailroom_stacks.constructs.storage import PrivateBucket, StreamTable
from mailroom_stacks.settings.queues import UNPROCESSED_DAYS
from mailroom_stacks.settings.settings import Settings

BATCH_SIZE = 100
RECORD_SECONDS = 21_600
"""Age in seconds at which Lambda gives up on a record. It is less than the day for which a stream keeps
records."""
BEHIND_SECONDS = 300
"""Lag in seconds of a stream's reader at which an alarm rings."""


@dataclass(frozen=True, kw_only=True)
class StreamWork(FunctionSpec):
    """Properties of a function that reads a stream, and of its event source mapping."""

    table: StreamTable
    parallelization: int
    """Number of batches of one shard that are processed in parallel."""
    filters: Sequence[str]
    """Filter patterns in JSON. The function gets the records that match any of them."""
    counted: bool
    """Whether Lambda counts the mapping's events, which the alarms about lost records need. Each mapping's
    counts are six metrics."""


class StreamReader(Construct):
    """Function that reads a table's stream with limited retries, and a bucket that gets the complete records
    on which Lambda gave up."""

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        work: StreamWork,
        unprocessed: PrivateBucket | None = None,
    ) -> None:
        """Create the function. `unprocessed` is the bucket of another reader; by default the reader creates
        its own. In the bucket, Lambda stores the records of each mapping under a separate prefix."""
        super().__init__(scope, pascal(work.function))
        if unprocessed is None:
            unprocessed = PrivateBucket(self, "Unprocessed", settings, keep_days=UNPROCESSED_DAYS)
            publish(self, UnprocessedBucketName=unprocessed.bucket_name)
        self.unprocessed = unprocessed
        spec = replace(
            work,
            grants=[*work.grants, *_read_stream(work.table), *self._give_up()],
            # Lambda retries a batch of a stream at once, so the only delay before a retry is the duration of
            # the failing invocation.
            comes_back_seconds=work.timeout_seconds,
        )
        self.function = HandlerFunction(self, settings, spec).resource
        self.mapping = self._mapping(work, settings)
        # Partial batch responses do not count as errors of the function, so only these alarms report records
        # on which Lambda gave up, or which it could not put into the bucket.
        if work.counted:
            self._put_aside(settings, work.function)
            self._dropped(settings, work.function)
        self._iterator_age(settings, work.function)

    def _mapping(self, work: StreamWork, settings: Settings) -> lambda_.CfnEventSourceMapping:
        """Create the mapping, with limits for retries and age, so that a single record cannot block its shard
        forever."""
        mapping = lambda_.CfnEventSourceMapping
        counts = mapping.MetricsConfigProperty(metrics=["EventCount"]) if work.counted else None
        return mapping(
            self,
            "Mapping",
            function_name=self.function.function_name,
            event_source_arn=work.table.table_stream_arn,
            # In a local stage the mapping is disabled, and a program reads the stream instead: the pump in
            # mailroom_local/pump.
            enabled=not settings.is_local,
            starting_position="TRIM_HORIZON",
            filter_criteria=mapping.FilterCriteriaProperty(
                filters=[mapping.FilterProperty(pattern=pattern) for pattern in work.filters]
            ),
            batch_size=BATCH_SIZE,
            maximum_batching_window_in_seconds=0,
            parallelization_factor=work.parallelization,
            maximum_retry_attempts=settings.times.stream_retries,
            maximum_record_age_in_seconds=RECORD_SECONDS,
            bisect_batch_on_function_error=True,
            function_response_types=["ReportBatchItemFailures"],
            # Lambda sends complete records to a bucket, but only their sequence numbers to a queue.
            destination_config=mapping.DestinationConfigProperty(
                on_failure=mapping.OnFailureProperty(destination=self.unprocessed.bucket_arn)
            ),
            metrics_config=counts,
        )

    def _give_up(self) -> list[Grant]:
        """Return the permissions with which Lambda, using the function's role, stores the records on which it
        gives up. Lambda may check the role when the mapping is created, and documents both actions for the
        whole bucket."""
        return [
            Grant(["s3:ListBucket"], [self.unprocessed.bucket_arn]),
            Grant(
                ["s3:PutObject"],
                [self.unprocessed.arn_for_objects("*")],
                wildcard="Lambda names the objects after mapping, shard and time.",
            ),
        ]

    def _put_aside(self, settings: Settings, name: str) -> None:
        text = AlarmText(
            subject=name,
            kind="gave-up",
            meaning=f"{name} failed on records of its stream at every retry. Lambda put them into the "
            f"bucket of unprocessed records, which keeps them for {UNPROCESSED_DAYS} days; they are not "
            "processed automatically.",
            next_step=f"{read_log(settings, name)}, fix the cause, mailroom messages resend --given-up "
            f"--stage {settings.stage}, then {_end(settings, f'{name}-gave-up', 'replayed')}",
        )
        count = self._count("OnFailureDestinationDeliveredEventCount")
        # The alarm must not end by itself: even if no further records are given up, the records in the bucket
        # still need a replay.
        stage_alarm(self, "GaveUp", settings, text, count, 1, missing=TreatMissingData.IGNORE)

    def _dropped(self, settings: Settings, name: str) -> None:
        """Create an alarm that rings if Lambda dropped records. It is separate from `gave-up`, because the
        sum of both metrics lacks a value in periods in which one of them lacks a value."""
        text = AlarmText(
            subject=name,
            kind="dropped",
            page="gave-up",
            meaning=f"{name} gave up on records of its stream. Lambda could not put them into the bucket of "
            "unprocessed records, and dropped them. Somebody has changed the bucket, its policy or the "
            "function's role since the deployment.",
            next_step=f"{read_log(settings, name)}, aws cloudformation detect-stack-drift --stack-name "
            f"{Stack.of(self).stack_name} (what has changed since?), deploy that stack with "
            f"--revert-drift, mailroom messages resend --stuck --stage {settings.stage}, then "
            f"{_end(settings, f'{name}-dropped', 'repaired')}",
        )
        count = self._count("DroppedEventCount")
        stage_alarm(self, "Dropped", settings, text, count, 1, missing=TreatMissingData.IGNORE)

    def _count(self, name: str) -> Metric:
        return metric("AWS/Lambda", name, "Sum", {"EventSourceMappingUUID": self.mapping.ref})

    def _iterator_age(self, settings: Settings, name: str) -> None:
        """Create an alarm that rings if records are read late."""
        text = AlarmText(
            subject=name,
            kind="iterator-age",
            meaning=f"{name} is over {BEHIND_SECONDS} s behind its table: records fail and are retried, "
            "which delays later records of their shard, or the table is written faster than it is read. The "
            "stream deletes records after a day. If nothing reads the stream, this alarm does not ring.",
            next_step=f"{read_log(settings, name)}; if nothing fails, raise {name}.parallelization. "
            "For records that the stream has deleted: mailroom messages resend --stuck --stage "
            f"{settings.stage}",
        )
        age = function_metric(settings, name, "IteratorAge", "Maximum")
        # CloudWatch reports the age of records that are read, so an idle table reports no data.
        stage_alarm(self, "IteratorAge", settings, text, age, BEHIND_SECONDS * 1000)


def _read_stream(table: StreamTable) -> list[Grant]:
    actions = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
    streams = Stack.of(table).format_arn(
        service="dynamodb", resource="table", resource_name=f"{table.plain_name}/stream/*"
    )
    return [
        Grant(actions, [str(table.table_stream_arn)]),
        Grant(
            ["dynamodb:ListStreams"],
            [streams],
            wildcard="The action lists the table's streams, so it applies to all of them.",
        ),
    ]


def _end(settings: Settings, alarm: str, reason: str) -> str:
    """Return the command that ends an alarm which does not end by itself."""
    return (
        f"aws cloudwatch set-alarm-state --alarm-name {settings.name(alarm)} --state-value OK "
        f"--state-reason {reason}"
    )
