"""The actions that the resources of a stage need: what their types' handlers name, less what serves
properties that no resource of the stage has. AWS publishes those types and IAM's actions; cfn-lint brings
them along."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from cfnlint.data import AdditionalSpecs  # type: ignore[import-untyped]
from cfnlint.helpers import load_resource  # type: ignore[import-untyped]
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

REGION = "us-east-1"
"""The region whose schemas are read: it has every resource type."""
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
    """An action as IAM's documents spell it; one of S3's schemas has s3:getObject."""
    service, _, name = action.partition(":")
    return f"{service.lower()}:{name[0].upper()}{name[1:]}"


@cache
def _services() -> Mapping[str, Any]:
    services: Mapping[str, Any] = load_resource(AdditionalSpecs, "Policies.json")
    return services


@dataclass(frozen=True)
class OptionalActions:
    """Actions, as patterns, that a type's handlers take for some of its properties alone."""

    resource_type: str
    properties: frozenset[str]
    """Paths such as EventDestination.KinesisFirehoseDestination; any of them calls for the actions."""
    actions: tuple[str, ...]


def _only_for(resource_type: str, properties: str, *actions: str) -> OptionalActions:
    return OptionalActions(f"AWS::{resource_type}", frozenset(properties.split()), actions)


_KEYS = ("kms:*",)
_METADATA = "MetadataConfiguration MetadataTableConfiguration"
OPTIONAL = (
    _only_for("ApiGatewayV2::Api", "BodyS3Location", "s3:*"),
    _only_for("ApiGatewayV2::Integration", "CredentialsArn", "iam:PassRole"),
    _only_for("DynamoDB::Table", "KinesisStreamSpecification", "kinesis:*", "dynamodb:*ableKinesis*"),
    _only_for("DynamoDB::Table", "ImportSourceSpecification", "s3:*", "logs:*", "dynamodb:*Import*"),
    _only_for("DynamoDB::Table", "SSESpecification", *_KEYS),
    _only_for(
        "DynamoDB::Table", "ResourcePolicy", "dynamodb:PutResourcePolicy", "dynamodb:DeleteResourcePolicy"
    ),
    # Of tables with replicas, which this type has no property for: they are AWS::DynamoDB::GlobalTable.
    _only_for("DynamoDB::Table", "", "iam:CreateServiceLinkedRole", "dynamodb:*Replica", "dynamodb:*Item"),
    _only_for("DynamoDB::Table", "", "dynamodb:Scan", "dynamodb:Query"),
    _only_for("Events::Rule", "RoleArn Targets.RoleArn", "iam:PassRole"),
    _only_for("IAM::Role", "ManagedPolicyArns", "iam:AttachRolePolicy"),
    _only_for("IAM::Role", "PermissionsBoundary", "iam:PutRolePermissionsBoundary"),
    # Whoever may take a boundary off need not keep to it.
    _only_for("IAM::Role", "", "iam:DeleteRolePermissionsBoundary"),
    _only_for("Lambda::EventSourceMapping", "KmsKeyArn", *_KEYS),
    _only_for("Lambda::Function", "VpcConfig", "ec2:*"),
    _only_for("Lambda::Function", "FileSystemConfigs", "elasticfilesystem:*", "s3files:*"),
    _only_for("Lambda::Function", "KmsKeyArn", *_KEYS),
    _only_for("Lambda::Function", "Layers", "lambda:GetLayerVersion"),
    _only_for(
        "Lambda::Function", "CodeSigningConfigArn", "lambda:PutFunctionCode*", "lambda:DeleteFunctionCode*"
    ),
    _only_for("Lambda::Function", "CodeSigningConfigArn", "lambda:GetCodeSigningConfig"),
    _only_for("Lambda::Function", "CapacityProviderConfig", "lambda:PassCapacityProvider"),
    _only_for("Logs::LogGroup", "DataProtectionPolicy", "firehose:*", "logs:CreateLogDelivery"),
    _only_for("Logs::LogGroup", "ResourcePolicyDocument", "logs:*ResourcePolicy"),
    _only_for("Logs::LogGroup", "FieldIndexPolicies", "logs:PutIndexPolicy", "logs:DeleteIndexPolicy"),
    _only_for("Logs::LogGroup", "KmsKeyId", "logs:*KmsKey"),
    _only_for("S3::Bucket", _METADATA, "s3tables:*", "s3:*Metadata*"),
    _only_for("S3::Bucket", "ReplicationConfiguration", "iam:PassRole", "s3:DeleteObject"),
    _only_for("S3::Bucket", "AccessControl", "s3:PutBucketAcl", "s3:PutObjectAcl"),
    _only_for(
        "SES::ConfigurationSetEventDestination", "EventDestination.KinesisFirehoseDestination", "iam:*"
    ),
    _only_for("SMSVOICE::ConfigurationSet", "EventDestinations.KinesisFirehoseDestination", "iam:PassRole"),
    _only_for("SNS::Subscription", "SubscriptionRoleArn", "iam:*"),
    _only_for("SNS::Topic", "DeliveryStatusLogging", "iam:*"),
    _only_for("SecretsManager::Secret", "ReplicaRegions", "secretsmanager:*Replicat*"),
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


def needed_actions(templates: Iterable[Mapping[str, Any]]) -> frozenset[Need]:
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
