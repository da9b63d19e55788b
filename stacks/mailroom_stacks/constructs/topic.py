"""SNS topics to which AWS services publish events, and the key that encrypts these events."""

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from mailroom_stacks.constructs.naming import accept
from mailroom_stacks.settings.settings import Settings

PUBLISHERS = ("cloudwatch", "events", "ses", "sms-voice")
"""Services that publish to the topics of a stage. All may use the key; the policy of each topic decides which
of them may publish there."""


def event_key(scope: Construct, settings: Settings) -> kms.Key:
    """Create the key for the topics of a stage: AWS services may not publish with the AWS managed key.

    For CloudWatch, the statement is restricted to this account, as in its documentation ("Encrypted topics":
    the key's policy with aws:SourceAccount). SES's developer guide shows the statement without a condition,
    and AWS does not document that SES or AWS End User Messaging sends this condition key: with a wrong
    condition, every event would be lost without an error. The topic's policy restricts who may publish, and
    for which resource.
    """
    key = kms.Key(
        scope,
        "EventKey",
        alias=_alias(settings),
        description="Events on the topics of the stage",
        enable_key_rotation=settings.monitoring.is_full,
        # The key can be deleted with the stage: a topic stores no messages that would need the key later.
        removal_policy=RemovalPolicy.DESTROY,
    )
    if not settings.monitoring.is_full:
        accept(key, "KMS5", "Each rotation adds a dollar a month, and the stage is to cost little.")
    account = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
    for service in PUBLISHERS:
        key.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(f"{service}.amazonaws.com")],
                actions=["kms:GenerateDataKey", "kms:Decrypt"],
                resources=["*"],  # in a key's policy, * means this key
                conditions=account if service == "cloudwatch" else None,
            )
        )
    return key


def event_key_by_name(scope: Construct, settings: Settings) -> kms.IKey:
    """Return the key for a stack that is deployed after the stack of the key. It is found by its name instead
    of a reference, because the app creates the stack of the alarms last (not tried on AWS)."""
    return kms.Alias.from_alias_name(scope, "EventKey", _alias(settings))


def _alias(settings: Settings) -> str:
    return f"alias/{settings.name('events')}"


class EventTopic(sns.Topic):
    """SNS topic named mailroom-{stage}-`name`, which requires TLS, and is encrypted."""

    def __init__(
        self, scope: Construct, construct_id: str, settings: Settings, *, name: str, key: kms.IKey
    ) -> None:
        super().__init__(
            scope, construct_id, topic_name=settings.name(name), master_key=key, enforce_ssl=True
        )

    def let_publish(self, service: str, source_arn: str) -> None:
        """Allow a service of PUBLISHERS to publish for this account's resource `source_arn`."""
        self.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(f"{service}.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic_arn],
                conditions={
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                    "ArnEquals": {"aws:SourceArn": source_arn},
                },
            )
        )
