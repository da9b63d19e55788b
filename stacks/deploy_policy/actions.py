"""Which actions the resources of a stage need: what their types' handlers name, less what serves properties
that no resource of the stage has. AWS publishes those types and IAM's actions; cfn-lint brings them along."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from cfnlint.data import AdditionalSpecs  # type: ignore[import-untyped]
from cfnlint.helpers import load_resource  # type: ignore[import-untyped]
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

REGION = "us-east-1"
"""Whose schemas are read: it has every resource type."""
_CALLED = ("create", "read", "update", "delete")
"""The handlers that a deployment runs. `list` is for who imports what exists."""


@cache
def handler_actions(resource_type: str) -> frozenset[str]:
    """The IAM actions that CloudFormation's handlers of a resource type name, and those for its tags.

    Raises cfnlint's ResourceNotFoundError for a type that does not exist.
    """
    schema: Mapping[str, Any] = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, resource_type).schema
    named = {
        action
        for handler in _CALLED
        for action in schema.get("handlers", {}).get(handler, {}).get("permissions", ())
    }
    tagging: Sequence[str] = schema.get("tagging", {}).get("permissions", ())
    return frozenset(_spelt(action) for action in (*sorted(named), *tagging) if exists(action))


def exists(action: str) -> bool:
    """Whether IAM knows the action: some schemas name operations of S3 that are none."""
    service, _, name = action.partition(":")
    return name.lower() in _services().get(service.lower(), {}).get("Actions", {})


def resource_kinds(action: str) -> tuple[str, ...]:
    """The kinds of resources that a policy may hold the action to, in lower case; none: `*` alone will do."""
    service, _, name = action.partition(":")
    kinds = _services()[service]["Actions"][name.lower()].get("Resources", ())
    return tuple(kind.lower() for kind in kinds)


def _spelt(action: str) -> str:
    """As IAM's documents have it; of S3's one schema writes s3:getObject."""
    service, _, name = action.partition(":")
    return f"{service.lower()}:{name[0].upper()}{name[1:]}"


@cache
def _services() -> Mapping[str, Any]:
    services: Mapping[str, Any] = load_resource(AdditionalSpecs, "Policies.json")
    return services


@dataclass(frozen=True)
class Optional:
    """Actions, as patterns, that a type's handlers take for some of its properties alone."""

    resource_type: str
    properties: frozenset[str]
    """Paths such as EventDestination.KinesisFirehoseDestination; any of them calls for the actions."""
    actions: tuple[str, ...]


def _optional(resource_type: str, properties: str, *actions: str) -> Optional:
    return Optional(f"AWS::{resource_type}", frozenset(properties.split()), actions)


_KEYS = ("kms:*",)
_METADATA = "MetadataConfiguration MetadataTableConfiguration"
OPTIONAL = (
    _optional("ApiGatewayV2::Api", "BodyS3Location", "s3:*"),
    _optional("ApiGatewayV2::Integration", "CredentialsArn", "iam:PassRole"),
    _optional("DynamoDB::Table", "KinesisStreamSpecification", "kinesis:*", "dynamodb:*ableKinesis*"),
    _optional("DynamoDB::Table", "ImportSourceSpecification", "s3:*", "logs:*", "dynamodb:*Import*"),
    _optional("DynamoDB::Table", "SSESpecification", *_KEYS),
    _optional(
        "DynamoDB::Table", "ResourcePolicy", "dynamodb:PutResourcePolicy", "dynamodb:DeleteResourcePolicy"
    ),
    # Of tables with replicas, which this type has no property for: they are AWS::DynamoDB::GlobalTable.
    _optional("DynamoDB::Table", "", "iam:CreateServiceLinkedRole", "dynamodb:*Replica", "dynamodb:*Item"),
    _optional("DynamoDB::Table", "", "dynamodb:Scan", "dynamodb:Query"),
    _optional("Events::Rule", "RoleArn Targets.RoleArn", "iam:PassRole"),
    _optional("IAM::Role", "ManagedPolicyArns", "iam:AttachRolePolicy"),
    _optional("IAM::Role", "PermissionsBoundary", "iam:PutRolePermissionsBoundary"),
    # Whoever may take a boundary off need not keep to it.
    _optional("IAM::Role", "", "iam:DeleteRolePermissionsBoundary"),
    _optional("Lambda::EventSourceMapping", "KmsKeyArn", *_KEYS),
    _optional("Lambda::Function", "VpcConfig", "ec2:*"),
    _optional("Lambda::Function", "FileSystemConfigs", "elasticfilesystem:*", "s3files:*"),
    _optional("Lambda::Function", "KmsKeyArn", *_KEYS),
    _optional("Lambda::Function", "Layers", "lambda:GetLayerVersion"),
    _optional(
        "Lambda::Function", "CodeSigningConfigArn", "lambda:PutFunctionCode*", "lambda:DeleteFunctionCode*"
    ),
    _optional("Lambda::Function", "CodeSigningConfigArn", "lambda:GetCodeSigningConfig"),
    _optional("Lambda::Function", "CapacityProviderConfig", "lambda:PassCapacityProvider"),
    _optional("Logs::LogGroup", "DataProtectionPolicy", "firehose:*", "logs:CreateLogDelivery"),
    _optional("Logs::LogGroup", "ResourcePolicyDocument", "logs:*ResourcePolicy"),
    _optional("Logs::LogGroup", "FieldIndexPolicies", "logs:PutIndexPolicy", "logs:DeleteIndexPolicy"),
    _optional("Logs::LogGroup", "KmsKeyId", "logs:*KmsKey"),
    _optional("S3::Bucket", _METADATA, "s3tables:*", "s3:*Metadata*"),
    _optional("S3::Bucket", "ReplicationConfiguration", "iam:PassRole", "s3:DeleteObject"),
    _optional("S3::Bucket", "AccessControl", "s3:PutBucketAcl", "s3:PutObjectAcl"),
    _optional(
        "SES::ConfigurationSetEventDestination", "EventDestination.KinesisFirehoseDestination", "iam:*"
    ),
    _optional("SMSVOICE::ConfigurationSet", "EventDestinations.KinesisFirehoseDestination", "iam:PassRole"),
    _optional("SNS::Subscription", "SubscriptionRoleArn", "iam:*"),
    _optional("SNS::Topic", "DeliveryStatusLogging", "iam:*"),
    _optional("SecretsManager::Secret", "ReplicaRegions", "secretsmanager:*Replicat*"),
)
"""What the handlers name beyond the resource itself, or of its content. Of the type's own service only what
hands out more than the resource's own settings is left out."""

BEYOND = {
    # An account's first API brings the role that API Gateway acts with, as whoever makes the API.
    ("AWS::ApiGatewayV2::Api", "Name"): ("iam:CreateServiceLinkedRole",),
    ("AWS::ApiGatewayV2::Stage", "AccessLogSettings"): (
        *("logs:CreateLogDelivery", "logs:UpdateLogDelivery", "logs:DeleteLogDelivery"),
        *("logs:GetLogDelivery", "logs:ListLogDeliveries"),
        *("logs:DescribeLogGroups", "logs:DescribeResourcePolicies", "logs:PutResourcePolicy"),
    ),
}
"""What a type's handlers need and do not name:
https://docs.aws.amazon.com/apigateway/latest/developerguide/using-service-linked-roles.html and
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-logging.html."""


@dataclass(frozen=True, order=True)
class Need:
    """An action, and the resource type that it is for."""

    action: str
    resource_type: str


def needs_of(templates: Iterable[Mapping[str, Any]]) -> frozenset[Need]:
    """What creating, reading, changing and deleting every resource of `templates` needs."""
    properties: dict[str, set[str]] = {}
    for template in templates:
        for resource in template["Resources"].values():
            paths = properties.setdefault(resource["Type"], set())
            paths |= set(_paths(resource.get("Properties", {})))
    return frozenset(
        Need(action, resource_type)
        for resource_type, paths in properties.items()
        for action in (*_handlers(resource_type, paths), *_beyond(resource_type, paths))
    )


def _handlers(resource_type: str, paths: set[str]) -> Iterable[str]:
    unused = [
        pattern
        for each in OPTIONAL
        if each.resource_type == resource_type and not each.properties & paths
        for pattern in each.actions
    ]
    named = handler_actions(resource_type)
    return (action for action in named if not any(fnmatchcase(action, pattern) for pattern in unused))


def _beyond(resource_type: str, paths: set[str]) -> Iterable[str]:
    for (of, path), actions in BEYOND.items():
        if of == resource_type and path in paths:
            yield from actions


def _paths(value: Any, prefix: str = "") -> Iterable[str]:
    """The properties of a resource and those one level below, in lists too."""
    if isinstance(value, list):
        for each in value:
            yield from _paths(each, prefix)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield f"{prefix}{key}"
            if not prefix:
                yield from _paths(inner, f"{key}.")
