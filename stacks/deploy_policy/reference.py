"""What AWS publishes of its resource types and IAM actions, as cfn-lint brings it along."""

from collections.abc import Mapping, Sequence
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
