"""A table of messages, keyed by id and event type, with a stream."""

from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from stacks.constructs.findings import accept
from stacks.constructs.removal import removal_policy
from stacks.settings import Settings


class StreamTable(dynamodb.Table):
    """Named after its construct in lower case; items go when their `ttl` (epoch seconds) has passed."""

    def __init__(
        self, scope: Construct, construct_id: str, settings: Settings, view: dynamodb.StreamViewType
    ) -> None:
        recoverable = settings.deployment.point_in_time_recovery
        self.plain_name = settings.name(construct_id.lower())
        """Its name in letters: where a reference would make one stack wait for the other."""
        super().__init__(
            scope,
            construct_id,
            table_name=self.plain_name,
            partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="event_type", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            stream=view,
            time_to_live_attribute="ttl",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=recoverable
            ),
            deletion_protection=settings.deployment.deletion_protection,
            removal_policy=removal_policy(settings),
        )
        if not recoverable:
            accept(
                self,
                "DDB3",
                "The stage's settings turn recovery off: its messages are for trying things out.",
            )
