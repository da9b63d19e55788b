"""Function that reads a table's stream, the bucket for given-up records, and its alarms."""

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
"""Age in seconds at which a record is given up: a stream keeps its records for a day."""
BEHIND_SECONDS = 300
"""Lag in seconds of a stream's reader at which an alarm rings."""


@dataclass(frozen=True, kw_only=True)
class StreamWork(FunctionSpec):
    """Properties of a function that reads a stream."""

    table: StreamTable
    parallelization: int
    """Batches of one shard that are read side by side."""
    filters: Sequence[str]
    """Patterns in JSON: the function gets records that match any of them."""


class StreamReader(Construct):
    """Function that gets a table's changes, within bounds, and a bucket that keeps given-up records whole."""

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        work: StreamWork,
        unprocessed: PrivateBucket | None = None,
    ) -> None:
        """Make the function. `unprocessed` is the bucket of another reader; without one, the reader makes its
        own. Lambda keeps the records of each mapping apart in a bucket."""
        super().__init__(scope, pascal(work.function))
        if unprocessed is None:
            unprocessed = PrivateBucket(self, "Unprocessed", settings, keep_days=UNPROCESSED_DAYS)
            publish(self, UnprocessedBucketName=unprocessed.bucket_name)
        self.unprocessed = unprocessed
        spec = replace(
            work,
            grants=[*work.grants, *_read_stream(work.table), *self._give_up()],
            # A stream retries a batch at once, so the only delay before a retry is the failing invocation.
            comes_back_seconds=work.timeout_seconds,
        )
        self.function = HandlerFunction(self, settings, spec).resource
        self.mapping = self._mapping(work, settings)
        # Partial batch responses are not errors of the function, so only these alarms show records that were
        # given up or could not be put into the bucket.
        self._put_aside(settings, work.function)
        self._dropped(settings, work.function)
        self._iterator_age(settings, work.function)

    def _mapping(self, work: StreamWork, settings: Settings) -> lambda_.CfnEventSourceMapping:
        """Make the mapping, bounded in retries and age, so that a single record cannot hold up its shard for
        ever."""
        mapping = lambda_.CfnEventSourceMapping
        # Metrics of a mapping cost money, so only full monitoring has them.
        full = settings.monitoring.is_full
        counts = mapping.MetricsConfigProperty(metrics=["EventCount"]) if full else None
        return mapping(
            self,
            "Mapping",
            function_name=self.function.function_name,
            event_source_arn=work.table.table_stream_arn,
            # In stage local the pump reads the stream, so the mapping is disabled.
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
            # A bucket gets whole records; a queue would get only their sequence numbers.
            destination_config=mapping.DestinationConfigProperty(
                on_failure=mapping.OnFailureProperty(destination=self.unprocessed.bucket_arn)
            ),
            metrics_config=counts,
        )

    def _give_up(self) -> list[Grant]:
        """Return the rights by which Lambda gives up records, with the function's role. It may check the role
        when the mapping is made, and documents both actions for the bucket as a whole."""
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
            meaning=f"{name} failed on records of its stream again and again. Lambda put them into the "
            f"bucket of unprocessed records, which keeps them for {UNPROCESSED_DAYS} days; nothing sends "
            "them on by itself.",
            next_step=f"{read_log(settings, name)}, fix the cause, mailroom repair --given-up --stage "
            f"{settings.stage}, then {_end(settings, f'{name}-gave-up', 'replayed')}",
        )
        count = self._count("OnFailureDestinationDeliveredEventCount")
        # Even if no further records are given up, those in the bucket still need a replay.
        stage_alarm(self, "GaveUp", settings, text, count, 1, missing=TreatMissingData.IGNORE)

    def _dropped(self, settings: Settings, name: str) -> None:
        """Make an alarm apart from `gave-up`: a sum has no value if one of its metrics lacks one."""
        text = AlarmText(
            subject=name,
            kind="dropped",
            page="gave-up",
            meaning=f"{name} gave up on records of its stream. Lambda could not put them into the bucket of "
            "unprocessed records, and dropped them. Somebody has changed the bucket, its policy or the "
            "function's role since the deployment.",
            next_step=f"{read_log(settings, name)}, aws cloudformation detect-stack-drift --stack-name "
            f"{Stack.of(self).stack_name} (what has changed since?), deploy that stack with "
            f"--revert-drift, mailroom repair --scan --stage {settings.stage}, then "
            f"{_end(settings, f'{name}-dropped', 'repaired')}",
        )
        count = self._count("DroppedEventCount")
        stage_alarm(self, "Dropped", settings, text, count, 1, missing=TreatMissingData.IGNORE)

    def _count(self, name: str) -> Metric:
        return metric("AWS/Lambda", name, "Sum", {"EventSourceMappingUUID": self.mapping.ref})

    def _iterator_age(self, settings: Settings, name: str) -> None:
        """Make an alarm that rings if records are read late."""
        text = AlarmText(
            subject=name,
            kind="iterator-age",
            meaning=f"{name} is over {BEHIND_SECONDS} s behind its table: records fail and are tried again, "
            "which holds up the records behind them in their shard, or more is written than it reads. The "
            "stream forgets records after a day. If nothing reads the stream at all, this alarm is silent.",
            next_step=f"{read_log(settings, name)}; if nothing fails, raise {name}.parallelization. "
            "For records that the stream forgot: mailroom repair --scan --stage "
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
            wildcard="Listing the table's streams names none of them.",
        ),
    ]


def _end(settings: Settings, alarm: str, reason: str) -> str:
    """Return the command that ends an alarm which does not end by itself."""
    return (
        f"aws cloudwatch set-alarm-state --alarm-name {settings.name(alarm)} --state-value OK "
        f"--state-reason {reason}"
    )
