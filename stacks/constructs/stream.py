"""A function that reads a table's stream, and the bucket for what it gives up on."""

from collections.abc import Mapping, Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.constructs.bucket import PrivateBucket
from stacks.constructs.function import HandlerFunction
from stacks.constructs.grants import Grant
from stacks.constructs.outputs import publish
from stacks.settings import Settings

INSERTS = '{"eventName":["INSERT"]}'


class StreamReader(Construct):
    """Runs lambdas/dispatch.py on every item put into `table`."""

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        table: dynamodb.Table,
        *,
        grants: Sequence[Grant],
        environment: Mapping[str, str],
    ) -> None:
        super().__init__(scope, "Dispatch")
        self.unprocessed = PrivateBucket(
            self,
            "Unprocessed",
            settings,
            keep_days=settings.retention.unprocessed_days,
        )
        self.function = HandlerFunction(
            self,
            settings,
            name="dispatch",
            handler="dispatch",
            limits=settings.dispatch,
            grants=[*grants, *_read_stream(settings, table), *self._give_up()],
            environment=environment,
        ).resource
        self.mapping = self._mapping(settings, table)
        alarm = self._alarm(settings.name("dispatch-gave-up"))
        publish(
            self,
            UnprocessedBucketName=self.unprocessed.bucket_name,
            DispatchGaveUpAlarmName=alarm.alarm_name,
            DispatchGaveUpAlarmArn=alarm.alarm_arn,
        )

    def _mapping(self, settings: Settings, table: dynamodb.Table) -> lambda_.CfnEventSourceMapping:
        """Bounded in retries and age, so that one record cannot hold up its shard for ever."""
        numbers, mapping = settings.dispatch, lambda_.CfnEventSourceMapping
        return mapping(
            self,
            "Mapping",
            function_name=self.function.function_name,
            event_source_arn=table.table_stream_arn,
            enabled=numbers.enabled,
            starting_position="TRIM_HORIZON",
            filter_criteria=mapping.FilterCriteriaProperty(filters=[mapping.FilterProperty(pattern=INSERTS)]),
            batch_size=numbers.batch_size,
            maximum_batching_window_in_seconds=numbers.batch_window_seconds,
            parallelization_factor=numbers.parallelization,
            maximum_retry_attempts=numbers.retries,
            maximum_record_age_in_seconds=numbers.maximum_record_age_seconds,
            bisect_batch_on_function_error=True,
            function_response_types=["ReportBatchItemFailures"],
            # A bucket gets the records whole; a queue would get their numbers alone.
            destination_config=mapping.DestinationConfigProperty(
                on_failure=mapping.OnFailureProperty(destination=self.unprocessed.bucket_arn)
            ),
            metrics_config=mapping.MetricsConfigProperty(metrics=["EventCount"]),
        )

    def _alarm(self, name: str) -> cloudwatch.Alarm:
        """Partial batch responses are no errors of the function: nothing else would tell of it."""
        gave_up = cloudwatch.Metric(
            namespace="AWS/Lambda",
            metric_name="OnFailureDestinationDeliveredEventCount",
            dimensions_map={"EventSourceMappingUUID": self.mapping.ref},
            statistic="Sum",
            period=Duration.minutes(5),
        )
        return cloudwatch.Alarm(
            self,
            "GaveUp",
            alarm_name=name,
            alarm_description="Items were not dispatched and wait in a bucket: python -m ops replay",
            metric=gave_up,
            threshold=1,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            # Nothing more given up does not mean that it was put back on its way.
            treat_missing_data=cloudwatch.TreatMissingData.IGNORE,
        )

    def _give_up(self) -> list[Grant]:
        """What Lambda itself does with the function's role when retries are used up."""
        return [
            Grant(["s3:ListBucket"], [self.unprocessed.bucket_arn]),
            Grant(
                ["s3:PutObject"],
                [self.unprocessed.arn_for_objects("aws/lambda/*")],
                wildcard="Lambda names the objects after mapping, shard and time.",
            ),
        ]


def _read_stream(settings: Settings, table: dynamodb.Table) -> list[Grant]:
    actions = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
    streams = Stack.of(table).format_arn(
        service="dynamodb", resource="table", resource_name=f"{settings.name('mailbox')}/stream/*"
    )
    return [
        Grant(actions, [str(table.table_stream_arn)]),
        Grant(
            ["dynamodb:ListStreams"],
            [streams],
            wildcard="Listing the table's streams names none of them.",
        ),
    ]
