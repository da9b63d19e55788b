"""Daily exports of tables to a bucket, which may be in another account. EventBridge Scheduler calls
DynamoDB itself, so the exports need no function."""

from collections.abc import Sequence

from aws_cdk import Aws, Stack
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from mailroom_stacks.constructs.grants import Grant, scheduler_role
from mailroom_stacks.constructs.storage import Table
from mailroom_stacks.settings.deploy import SecondCopy
from mailroom_stacks.settings.settings import Settings

GROUP = "second-copy"
"""Short name of the schedule group."""


def export_daily(scope: Construct, settings: Settings, copy: SecondCopy, tables: Sequence[Table]) -> None:
    """Create schedules that export each of `tables` once a day, the first time right after the deployment.
    The keys of a table's objects begin with the table's name."""
    stack = Stack.of(scope)
    bucket = stack.format_arn(service="s3", region="", account="", resource=copy.bucket)
    objects = [f"{bucket}/{table.plain_name}/*" for table in tables]
    reason = "DynamoDB generates the names of an export's objects."
    # DynamoDB writes the objects with the permissions of the role that starts the export.
    grants = [
        Grant(["dynamodb:ExportTableToPointInTime"], [table.table_arn for table in tables]),
        Grant(["s3:AbortMultipartUpload", "s3:PutObject", "s3:PutObjectAcl"], objects, wildcard=reason),
    ]
    name = settings.name(GROUP)
    group = scheduler.CfnScheduleGroup(scope, "Group", name=name)
    role = scheduler_role(scope, name, grants)
    kind = scheduler.CfnSchedule
    for table in tables:
        export = {
            "TableArn": table.table_arn,
            "S3Bucket": copy.bucket,
            # With the owner's account, the export fails if the bucket belongs to another account.
            "S3BucketOwner": copy.account or Aws.ACCOUNT_ID,
            "S3Prefix": table.plain_name,
            # With the bucket's own KMS key, the role would need permissions for the key.
            "S3SseAlgorithm": "AES256",
            "ExportFormat": "DYNAMODB_JSON",
        }
        schedule = kind(
            scope,
            f"Schedule-{table.plain_name}",
            name=table.plain_name,
            group_name=name,
            schedule_expression="rate(1 day)",
            flexible_time_window=kind.FlexibleTimeWindowProperty(mode="OFF"),
            target=kind.TargetProperty(
                arn=f"arn:{Aws.PARTITION}:scheduler:::aws-sdk:dynamodb:exportTableToPointInTime",
                role_arn=role.role_arn,
                input=stack.to_json_string(export),
            ),
        )
        schedule.add_resource_dependency(group)
