"""IAM actions that a deployment of a stage's resources needs: the actions that CloudFormation lists for the
handlers of each resource type, without the actions for properties that the stage's resources do not have. AWS
publishes the resource types and the IAM actions; cfn-lint contains both."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from cfnlint.data import AdditionalSpecs  # type: ignore[import-untyped]
from cfnlint.helpers import load_resource  # type: ignore[import-untyped]
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

REGION = "us-east-1"
"""Region whose resource schemas are read, because it has every resource type."""
_CALLED = ("create", "read", "update", "delete")
"""Handlers of a resource type that a deployment runs. The handler `list` is only for importing existing
resources."""


@cache
def handler_actions(resource_type: str) -> frozenset[str]:
    """Return the IAM actions that CloudFormation lists for the handlers of a resource type, and those for its
    tags.

    Raises cfn-lint's ResourceNotFoundError for a type that does not exist.
    """
    schema: Mapping[str, Any] = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, resource_type).schema
    actions = {
        action
        for handler in _CALLED
        for action in schema.get("handlers", {}).get(handler, {}).get("permissions", ())
    }
    tagging: Sequence[str] = schema.get("tagging", {}).get("permissions", ())
    return frozenset(_spelt(action) for action in (*sorted(actions), *tagging) if exists(action))


def exists(action: str) -> bool:
    """Return whether an IAM action of this name exists: some schemas contain operations of S3 that are not
    actions."""
    service, _, name = action.partition(":")
    return name.lower() in _services().get(service.lower(), {}).get("Actions", {})


def resource_kinds(action: str) -> tuple[str, ...]:
    """Return the kinds of resources to which a policy can restrict the action, in lower case. For an action
    without kinds, the resource must be `*`."""
    service, _, name = action.partition(":")
    kinds = _services()[service]["Actions"][name.lower()].get("Resources", ())
    return tuple(kind.lower() for kind in kinds)


def _spelt(action: str) -> str:
    """Return an action in the spelling of IAM's documentation. A schema of S3, for example, contains
    s3:getObject."""
    service, _, name = action.partition(":")
    return f"{service.lower()}:{name[0].upper()}{name[1:]}"


@cache
def _services() -> Mapping[str, Any]:
    services: Mapping[str, Any] = load_resource(AdditionalSpecs, "Policies.json")
    return services


OPTIONAL: tuple[tuple[str, ...], ...] = (
    ("ApiGatewayV2::Api", "BodyS3Location", "s3:*"),
    ("ApiGatewayV2::Integration", "CredentialsArn", "iam:PassRole"),
    ("DynamoDB::Table", "KinesisStreamSpecification", "kinesis:*", "dynamodb:*ableKinesis*"),
    ("DynamoDB::Table", "ImportSourceSpecification", "s3:*", "logs:*", "dynamodb:*Import*"),
    ("DynamoDB::Table", "SSESpecification", "kms:*"),
    ("DynamoDB::Table", "ResourcePolicy", "dynamodb:PutResourcePolicy", "dynamodb:DeleteResourcePolicy"),
    # Actions for replicas, which this type does not support: tables with replicas are
    # AWS::DynamoDB::GlobalTable.
    ("DynamoDB::Table", "", "iam:CreateServiceLinkedRole", "dynamodb:*Replica", "dynamodb:*Item"),
    ("DynamoDB::Table", "", "dynamodb:Scan", "dynamodb:Query"),
    ("Events::Rule", "RoleArn Targets.RoleArn", "iam:PassRole"),
    ("IAM::Role", "ManagedPolicyArns", "iam:AttachRolePolicy"),
    ("IAM::Role", "PermissionsBoundary", "iam:PutRolePermissionsBoundary"),
    # A role that may remove a permissions boundary is not limited by it.
    ("IAM::Role", "", "iam:DeleteRolePermissionsBoundary"),
    ("Lambda::EventSourceMapping", "KmsKeyArn", "kms:*"),
    ("Lambda::Function", "VpcConfig", "ec2:*"),
    ("Lambda::Function", "FileSystemConfigs", "elasticfilesystem:*", "s3files:*"),
    ("Lambda::Function", "KmsKeyArn", "kms:*"),
    ("Lambda::Function", "Layers", "lambda:GetLayerVersion"),
    ("Lambda::Function", "CodeSigningConfigArn", "lambda:PutFunctionCode*", "lambda:DeleteFunctionCode*"),
    ("Lambda::Function", "CodeSigningConfigArn", "lambda:GetCodeSigningConfig"),
    ("Lambda::Function", "CapacityProviderConfig", "lambda:PassCapacityProvider"),
    ("Logs::LogGroup", "DataProtectionPolicy", "firehose:*", "logs:CreateLogDelivery"),
    ("Logs::LogGroup", "ResourcePolicyDocument", "logs:*ResourcePolicy"),
    ("Logs::LogGroup", "FieldIndexPolicies", "logs:PutIndexPolicy", "logs:DeleteIndexPolicy"),
    ("Logs::LogGroup", "KmsKeyId", "logs:*KmsKey"),
    ("S3::Bucket", "MetadataConfiguration MetadataTableConfiguration", "s3tables:*", "s3:*Metadata*"),
    ("S3::Bucket", "ReplicationConfiguration", "iam:PassRole", "s3:DeleteObject"),
    ("S3::Bucket", "AccessControl", "s3:PutBucketAcl", "s3:PutObjectAcl"),
    ("SES::ConfigurationSetEventDestination", "EventDestination.KinesisFirehoseDestination", "iam:*"),
    ("SMSVOICE::ConfigurationSet", "EventDestinations.KinesisFirehoseDestination", "iam:PassRole"),
    ("SNS::Subscription", "SubscriptionRoleArn", "iam:*"),
    ("SNS::Topic", "DeliveryStatusLogging", "iam:*"),
    ("SecretsManager::Secret", "ReplicaRegions", "secretsmanager:*Replicat*"),
)
"""Actions of a type's handlers that go beyond the resource itself, or concern its content. Each row has the
type, the properties that need the actions (each a path), and the actions, as patterns. Of the actions of the
type's own service, only those are listed that grant more than changing the settings of the resource."""

BEYOND = {
    # The first API of an account also needs the service-linked role of API Gateway, which its deployer
    # creates.
    ("AWS::ApiGatewayV2::Api", "Name"): ("iam:CreateServiceLinkedRole",),
    ("AWS::ApiGatewayV2::Stage", "AccessLogSettings"): (
        *("logs:CreateLogDelivery", "logs:UpdateLogDelivery", "logs:DeleteLogDelivery"),
        *("logs:GetLogDelivery", "logs:ListLogDeliveries"),
        *("logs:DescribeLogGroups", "logs:DescribeResourcePolicies", "logs:PutResourcePolicy"),
    ),
}
"""Actions that a type's handlers need but do not list:
https://docs.aws.amazon.com/apigateway/latest/developerguide/using-service-linked-roles.html and
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-logging.html."""


def needed_actions(templates: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Return the actions for creating, reading, changing and deleting every resource of `templates`, by
    resource type."""
    properties: dict[str, set[str]] = {}
    for template in templates:
        for resource in template["Resources"].values():
            paths = properties.setdefault(resource["Type"], set())
            paths |= set(_paths(resource.get("Properties", {})))
    return {of: {*_needed_for(of, paths)} for of, paths in properties.items()}


def _needed_for(resource_type: str, paths: set[str]) -> Iterable[str]:
    unused = [
        pattern
        for of, properties, *patterns in OPTIONAL
        if resource_type == f"AWS::{of}" and paths.isdisjoint(properties.split())
        for pattern in patterns
    ]
    for action in handler_actions(resource_type):
        if not any(fnmatchcase(action, pattern) for pattern in unused):
            yield action
    for (of, path), actions in BEYOND.items():
        if of == resource_type and path in paths:
            yield from actions


def _paths(value: Any, prefix: str = "") -> Iterable[str]:
    """Yield the paths of a resource's properties and of those one level below, also in lists."""
    if isinstance(value, list):
        for item in value:
            yield from _paths(item, prefix)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield f"{prefix}{key}"
            if not prefix:
                yield from _paths(inner, f"{key}.")
