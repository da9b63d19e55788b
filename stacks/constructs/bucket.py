"""A bucket that nobody reads but us."""

from aws_cdk import Aws, Duration
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.constructs.findings import accept
from stacks.constructs.removal import removal_policy
from stacks.settings.stage import Settings


def bucket_name(settings: Settings, short: str) -> str:
    """The bucket's name, which account and region make the only one in the world."""
    return f"{settings.name(short)}-{Aws.ACCOUNT_ID}-{Aws.REGION}"


class PrivateBucket(s3.Bucket):
    """Named after its construct in lower case; encrypted, TLS only; objects go after `keep_days`."""

    def __init__(self, scope: Construct, construct_id: str, settings: Settings, *, keep_days: int) -> None:
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
                    expiration=Duration.days(keep_days),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                )
            ],
            removal_policy=removal_policy(settings),
        )
        accept(
            self,
            "S1",
            "Access logs would copy keys, which hold message ids, into a bucket with a life of its own, out "
            "of reach of erasure; who wants an audit trail turns on CloudTrail's data events.",
        )
