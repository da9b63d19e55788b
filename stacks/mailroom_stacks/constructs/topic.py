"""SNS topic to which AWS services publish events."""

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from mailroom_stacks.constructs.naming import accept
from mailroom_stacks.settings.settings import Settings


class EventTopic(sns.Topic):
    """SNS topic named mailroom-{stage}-`name`, which requires TLS. It is encrypted with its own key, because
    AWS services may not use the AWS managed key to publish."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        settings: Settings,
        *,
        name: str,
        key: kms.Key | None = None,
    ) -> None:
        """Create the topic. `key` is the key of another topic to which the same services publish; by default
        the topic creates its own."""
        self.key = key or kms.Key(
            scope,
            f"{construct_id}Key",
            alias=f"alias/{settings.name(name)}",
            description=f"Events on the topic {settings.name(name)}",
            enable_key_rotation=settings.monitoring.is_full,
            # The key can be deleted with the stage: a topic stores no messages that would need the key later.
            removal_policy=RemovalPolicy.DESTROY,
        )
        if key is None and not settings.monitoring.is_full:
            accept(self.key, "KMS5", "Each rotation adds a dollar a month, and the stage is only for tests.")
        super().__init__(
            scope, construct_id, topic_name=settings.name(name), master_key=self.key, enforce_ssl=True
        )

    def let_use_key(self, service: str) -> None:
        """Allow a service, such as ses.amazonaws.com, to encrypt the messages that it publishes.

        For CloudWatch, the statement is restricted to this account, as in its documentation ("Encrypted
        topics": the key's policy with aws:SourceAccount). SES's developer guide shows the statement without a
        condition, and AWS does not document that SES or AWS End User Messaging sends this condition key: with
        a wrong condition, every event would be lost without an error. The topic's policy restricts who may
        publish, and for which resource.
        """
        account = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        self.key.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(service)],
                actions=["kms:GenerateDataKey", "kms:Decrypt"],
                resources=["*"],  # in a key's policy, * means this key
                conditions=account if service == "cloudwatch.amazonaws.com" else None,
            )
        )

    def let_publish(self, service: str, source_arn: str) -> None:
        """Allow a service to publish for this account's resource `source_arn`, and to use the key for
        that."""
        self.let_use_key(service)
        self.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(service)],
                actions=["sns:Publish"],
                resources=[self.topic_arn],
                conditions={
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                    "ArnEquals": {"aws:SourceArn": source_arn},
                },
            )
        )
