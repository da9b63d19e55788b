"""Preparation of the command `destroy`: asks for confirmation, and empties the buckets, because
CloudFormation deletes only empty ones."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from botocore.exceptions import ClientError

from mailroom_ops.shared.deployed_stage import aws_session, prefix
from mailroom_ops.shared.screen import Refused, aws_faults, print_line, status

if TYPE_CHECKING:
    from types_boto3_cloudformation import CloudFormationClient
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client

BUCKET, TABLES = "AWS::S3::Bucket", ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable")


def empty_what_goes(stage: str, folder: Path, *, yes: bool) -> None:
    """Ask for confirmation, then empty the buckets that are deleted with the stage, which was synthesized to
    `folder`. Resources that the stage retains remain untouched. Exits with 2 if the stage is protected, or
    the deletion was not confirmed."""
    templates = {
        path.name.removesuffix(".template.json"): json.loads(path.read_text())
        for path in sorted(folder.glob(f"{prefix(stage)}*.template.json"))
    }
    with aws_faults(stage):
        session = aws_session()
        formation = session.client("cloudformation")
        deployed = [name for name in templates if _unprotected(formation, name, stage)]
        buckets, tables = (
            [resource for name in deployed for resource in _deleted(formation, name, templates[name], kinds)]
            for kinds in ((BUCKET,), TABLES)
        )
        _require_unprotected(session.client("dynamodb"), tables, stage)
        outliving = sorted(kind for name in deployed for kind in retained(templates[name]))
        print_line(f"These stacks are deleted: {', '.join(deployed) or 'none is deployed'}.")
        print_line(f"Buckets that are deleted with their content: {', '.join(buckets) or 'none'}.")
        print_line(f"Retained, by the stage's settings: {', '.join(outliving) or 'nothing'}.")
        if not yes and typer.prompt(f"Type {stage} to delete them") != stage:
            raise Refused("Nothing was deleted.")
        s3 = session.client("s3")
        with status("emptying the buckets", quiet=False):
            for bucket in buckets:
                empty(s3, bucket)


def _unprotected(formation: "CloudFormationClient", name: str, stage: str) -> bool:
    """Return whether the stack is deployed. Raises Refused if it is protected."""
    try:
        (stack,) = formation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if "does not exist" in f"{error}":
            return False
        raise
    if stack.get("EnableTerminationProtection"):
        raise Refused(
            f"{name} is protected. Set mailroom.{stage}.deployment.termination_protection to false, and "
            "deploy the stage first."
        )
    return True


def _require_unprotected(client: "DynamoDBClient", tables: list[str], stage: str) -> None:
    """Raise Refused for a table that CloudFormation could not delete, before a bucket is emptied."""
    for table in tables:
        if client.describe_table(TableName=table)["Table"].get("DeletionProtectionEnabled"):
            raise Refused(
                f"{table} is protected. Set mailroom.{stage}.deployment.deletion_protection to false, and "
                "deploy the stage first."
            )


def _deleted(
    formation: "CloudFormationClient", name: str, template: dict[str, Any], kinds: tuple[str, ...]
) -> Iterator[str]:
    """Yield the physical ids of the stack's resources of these types that CloudFormation deletes."""
    doomed = {
        logical
        for logical, resource in template["Resources"].items()
        if resource["Type"] in kinds and resource.get("DeletionPolicy") != "Retain"
    }
    pages = formation.get_paginator("list_stack_resources").paginate(StackName=name)
    for page in pages:
        for summary in page["StackResourceSummaries"]:
            if summary["LogicalResourceId"] in doomed and "PhysicalResourceId" in summary:
                yield summary["PhysicalResourceId"]


def retained(template: dict[str, Any]) -> Iterator[str]:
    """Return the types of the resources that outlive a stack, such as S3::Bucket."""
    resources = template["Resources"].values()
    kinds = {resource["Type"] for resource in resources if resource.get("DeletionPolicy") == "Retain"}
    return (kind.removeprefix("AWS::") for kind in kinds)


def empty(s3: "S3Client", bucket: str) -> None:
    """Delete all objects of a bucket, in all their versions. Raises ClientError, and Refused if S3 does not
    delete an object."""
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        versions = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        if versions:
            keys = [{"Key": version["Key"], "VersionId": version["VersionId"]} for version in versions]
            answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})  # type: ignore[typeddict-item]
            if errors := answer.get("Errors"):
                raise Refused(f"{bucket}/{errors[0].get('Key')}: {errors[0].get('Message')}.")
