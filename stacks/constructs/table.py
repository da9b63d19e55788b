"""Tables: on demand, protected as the stage wants it."""

from typing import Any

from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from stacks.constructs.findings import accept
from stacks.constructs.outputs import publish
from stacks.constructs.removal import removal_policy
from stacks.settings.stage import Settings

TTL = "ttl"
"""The attribute, in epoch seconds, after which DynamoDB may delete an item."""


class Table(dynamodb.Table):
    """Named mailroom-{stage}-`name`, with string keys. `options` are CDK's own."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        settings: Settings,
        *,
        name: str,
        key: str,
        sort_key: str | None = None,
        **options: Any,
    ) -> None:
        recoverable = settings.deployment.point_in_time_recovery
        protected = settings.deployment.deletion_protection
        self.plain_name = settings.name(name)
        """Its name in letters: where a reference would make one stack wait for the other."""
        super().__init__(
            scope,
            construct_id,
            table_name=self.plain_name,
            partition_key=_string(key),
            sort_key=_string(sort_key) if sort_key else None,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=recoverable
            ),
            deletion_protection=protected,
            removal_policy=removal_policy(settings, refuses=protected),
            **options,
        )
        if not recoverable:
            accept(
                self,
                "DDB3",
                "The stage's settings turn recovery off: its messages are for trying things out.",
            )
        publish(
            self,
            **{f"{construct_id}TableName": self.table_name, f"{construct_id}TableArn": self.table_arn},
        )


class StreamTable(Table):
    """A table of messages, keyed by id and event type, with a stream; named after its construct in lower
    case. Items go when their `ttl` has passed."""

    def __init__(
        self, scope: Construct, construct_id: str, settings: Settings, view: dynamodb.StreamViewType
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            settings,
            name=construct_id.lower(),
            key="id",
            sort_key="event_type",
            stream=view,
            time_to_live_attribute=TTL,
        )
        publish(self, **{f"{construct_id}StreamArn": str(self.table_stream_arn)})


def _string(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
