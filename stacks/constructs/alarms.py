"""The alarms that every queue has, and those of what has no queue before it."""

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as http
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.derived import DAY

IN_FLIGHT_MANY = 100_000
"""SQS's limit is 120,000 a queue."""
AT_LEAST = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD


def not_empty(scope: Construct, dead_letters: sqs.Queue, name: str) -> cloudwatch.Alarm:
    """Rings while a dead letter waits, also while somebody looks at it."""
    waiting = {
        "visible": dead_letters.metric_approximate_number_of_messages_visible(),
        "hidden": dead_letters.metric_approximate_number_of_messages_not_visible(),
    }
    return cloudwatch.Alarm(
        scope,
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
        comparison_operator=AT_LEAST,
        # A queue that nobody touches for hours reports nothing: that must not end the alarm.
        treat_missing_data=cloudwatch.TreatMissingData.IGNORE,
    )


def backlog_old(scope: Construct, queue: sqs.Queue, name: str, kept_days: int) -> cloudwatch.Alarm:
    """SQS deletes what is past its retention, `kept_days`, silently and past the dead-letter queue."""
    return cloudwatch.Alarm(
        scope,
        "BacklogOld",
        alarm_name=name,
        alarm_description="Messages wait for half of the queue's retention: past all of it they go.",
        metric=queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(5)),
        threshold=kept_days * DAY // 2,
        evaluation_periods=1,
        comparison_operator=AT_LEAST,
    )


def in_flight_many(scope: Construct, queue: sqs.Queue, name: str) -> cloudwatch.Alarm:
    """What waits between two tries is in flight as well: past the limit SQS hands out no more."""
    return cloudwatch.Alarm(
        scope,
        "InFlightMany",
        alarm_name=name,
        alarm_description="Messages in flight near the queue's limit of 120,000: past it none is read.",
        metric=queue.metric_approximate_number_of_messages_not_visible(period=Duration.minutes(5)),
        threshold=IN_FLIGHT_MANY,
        evaluation_periods=1,
        comparison_operator=AT_LEAST,
    )


def errors(scope: Construct, function: lambda_.Function, name: str, remedy: str) -> cloudwatch.Alarm:
    """Rings at the first invocation that fails; for a function that no dead-letter queue stands behind."""
    metric = function.metric_errors(period=Duration.minutes(5), statistic="Sum")
    return _at_the_first(scope, "Errors", metric, name, remedy)


def server_errors(scope: Construct, api: http.HttpApi, name: str, remedy: str) -> cloudwatch.Alarm:
    """Rings at the first answer that blames us, be it the function's or API Gateway's own."""
    metric = api.metric_server_error(period=Duration.minutes(5), statistic="Sum")
    return _at_the_first(scope, "ServerErrors", metric, name, remedy)


def _at_the_first(
    scope: Construct, id_: str, metric: cloudwatch.Metric, name: str, remedy: str
) -> cloudwatch.Alarm:
    return cloudwatch.Alarm(
        scope,
        id_,
        alarm_name=name,
        alarm_description=remedy,
        metric=metric,
        threshold=1,
        evaluation_periods=1,
        comparison_operator=AT_LEAST,
        # Nobody calls for hours, and then there is nothing to count.
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
    )
