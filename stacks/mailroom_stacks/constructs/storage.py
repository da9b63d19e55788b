"""Tables, private buckets and secrets."""

import string
from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Aws, Duration, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.naming import accept, pascal, publish, removal_policy
from mailroom_stacks.settings.settings import Settings

TTL = "ttl"
"""Attribute with the time, in epoch seconds, after which DynamoDB may delete an item."""


class Table(dynamodb.Table):
    """Table named mailroom-{stage}-`name`, with string keys. `options` are properties of the CDK's Table."""

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
        """Name of the table as a string: a reference would make one stack depend on the other."""
        self.plain_arn = Stack.of(scope).format_arn(
            service="dynamodb", resource="table", resource_name=self.plain_name
        )
        """ARN of the table, with `plain_name` instead of a reference."""
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
            reason = "The stage's settings turn recovery off: its messages are only for tests."
            accept(self, "DDB3", reason)
        names = {f"{construct_id}TableName": self.table_name, f"{construct_id}TableArn": self.table_arn}
        publish(self, **names)

    def add_whole_index(self, name: str, key: str, sort: str) -> None:
        """Add a global secondary index of whole items, with two string keys."""
        self.add_global_secondary_index(index_name=name, partition_key=_string(key), sort_key=_string(sort))

    def add_index(self, name: str, key: str, sort_key: str, attributes: Sequence[str] = ()) -> None:
        """Add a global secondary index with the string key `key` and the number `sort_key`. `attributes` are
        projected in addition to the keys."""
        projection = dynamodb.ProjectionType.INCLUDE if attributes else dynamodb.ProjectionType.KEYS_ONLY
        self.add_global_secondary_index(
            index_name=name,
            partition_key=_string(key),
            sort_key=dynamodb.Attribute(name=sort_key, type=dynamodb.AttributeType.NUMBER),
            projection_type=projection,
            non_key_attributes=list(attributes) or None,
        )


class StreamTable(Table):
    """Table of messages by id and event type, with a stream. Its name is that of its construct in lower case.
    DynamoDB deletes items after their `ttl`."""

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


def bucket_name(settings: Settings, short: str) -> str:
    """Return the name of a bucket, which is globally unique by its account and region."""
    return f"{settings.name(short)}-{Aws.ACCOUNT_ID}-{Aws.REGION}"


def read_payloads(stack: Stack, settings: Settings) -> list[Grant]:
    """Return the permissions to read the payload bucket, directly or by presigned URLs for a provider."""
    reason = "Producers choose the keys of payloads and attachments."
    return read_objects(stack, bucket_name(settings, "payloads"), "*", reason)


def read_objects(stack: Stack, bucket: str, keys: str, reason: str) -> list[Grant]:
    """Return the permissions to read the objects `keys` of a bucket. `reason` is required if `keys` contains
    a wildcard."""
    arn = stack.format_arn(service="s3", region="", account="", resource=bucket)
    return [
        # Without s3:ListBucket, S3 responds to a request for a missing object with 403, like for missing
        # permissions, and not with 404.
        Grant(["s3:ListBucket"], [arn]),
        Grant(["s3:GetObject"], [f"{arn}/{keys}"], wildcard=reason),
    ]


class PrivateBucket(s3.Bucket):
    """Encrypted private bucket that requires TLS. Its name is that of its construct in lower case. Objects
    are deleted after `keep_days`, unless it is None."""

    def __init__(
        self, scope: Construct, construct_id: str, settings: Settings, *, keep_days: int | None
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            bucket_name=bucket_name(settings, construct_id.lower()),
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            lifecycle_rules=[
                s3.LifecycleRule(
                    expiration=None if keep_days is None else Duration.days(keep_days),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                )
            ],
            removal_policy=removal_policy(settings),
        )
        accept(
            self,
            "S1",
            "Access logs would copy keys, which contain message ids, into another bucket, where an erasure "
            "would not delete them; for an audit trail, turn on data events of CloudTrail.",
        )


_RANDOM_KEY: Mapping[str, Any] = {
    "password_length": 44,  # 44 letters and digits have over 256 bits; read as base64, they are 33 bytes
    "include_space": False,
    "exclude_punctuation": True,
    "exclude_characters": string.punctuation,  # the emulator supports only this way to exclude characters
}
RANDOM_KEY = secretsmanager.SecretStringGenerator(**_RANDOM_KEY)
"""Generator of a secret that consists of a random key."""
RANDOM_KEY_IN_JSON = secretsmanager.SecretStringGenerator(
    secret_string_template="{}",  # noqa: S106 - the generated key is added
    generate_string_key="key",
    **_RANDOM_KEY,
)
"""Generator of a secret that is a JSON object with a random key as `key`."""


class Secret(secretsmanager.Secret):
    """Secret named mailroom-{stage}-`name`. The stack has outputs with its name and ARN.

    Never change `generated`: CloudFormation would replace a value that people have put into the secret.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        settings: Settings,
        *,
        name: str,
        description: str,
        generated: secretsmanager.SecretStringGenerator,
        not_rotated: str,
    ) -> None:
        """Create the secret. `not_rotated` is the reason why AWS does not rotate it."""
        super().__init__(
            scope,
            construct_id,
            secret_name=settings.name(name),
            description=description,
            generate_secret_string=generated,
            removal_policy=removal_policy(settings),
        )
        accept(self, "SMG4", not_rotated)
        output = f"{pascal(name)}Secret"
        publish(self, **{f"{output}Name": settings.name(name), f"{output}Arn": self.secret_arn})

    def read(self) -> Grant:
        """Return the permission to read the secret."""
        return Grant(["secretsmanager:GetSecretValue"], [self.secret_arn])


def provider_secret(
    scope: Construct,
    settings: Settings,
    name: str,
    description: str,
    *,
    construct_id: str = "",
    issuer: str = "The provider",
) -> Secret:
    """Create the secret mailroom-{stage}-`name`, into which operators put a provider's credentials.
    `description` describes their format, and `issuer` is the company that issues them."""
    return Secret(
        scope,
        construct_id or f"{pascal(name)}Secret",
        settings,
        name=name,
        description=description,
        # Never change how the first value is generated. CloudFormation would replace the credentials that
        # operators have put into the secret: see Secret.
        generated=secretsmanager.SecretStringGenerator(
            secret_string_template="{}",  # noqa: S106 - only a placeholder
            generate_string_key="placeholder",
        ),
        not_rotated=f"{issuer} issues the credentials, and AWS cannot request new ones.",
    )
