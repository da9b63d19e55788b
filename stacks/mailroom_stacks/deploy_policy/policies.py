"""Policies of a stage, derived from its settings and templates, and the names and ids by which they are
restricted to it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aws_cdk import DefaultStackSynthesizer
from aws_cdk.region_info import RegionInfo

from mailroom_stacks.app.cache import NO_BUNDLES, assembly
from mailroom_stacks.ci_roles import QUALIFIER
from mailroom_stacks.deploy_policy.actions import needed_actions
from mailroom_stacks.deploy_policy.document import documents
from mailroom_stacks.deploy_policy.scopes import Place, statements
from mailroom_stacks.paths import CDK_JSON
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.settings import Settings

Templates = Sequence[Mapping[str, Any]]
DEPLOY = "deploy"
"""Stack that a person deploys with their own credentials."""
_KEYS_OF_TAGS = ("service", "stage")
"""Tags of `deployment.tags` that identify the stage of a KMS key; other tags may change."""


def read(stage: str, context: Mapping[str, object]) -> tuple[Settings, Templates]:
    """Return the settings of `stage`, and the templates of all its stacks except `deploy`, without bundling.
    Raises SettingsError and NagError, as the app does."""
    settings = load(_over_cdk_json(context)["mailroom"], stage)
    files = sorted(assembly({**context, "stage": stage, **NO_BUNDLES}).glob("*.template.json"))
    templates = (file for file in files if file.name.partition(".")[0] != settings.name(DEPLOY))
    return settings, [json.loads(file.read_text()) for file in templates]


def qualifier_of(settings: Settings, context: Mapping[str, object]) -> str:
    """Return the qualifier of the bootstrap that deploys the stage, by the same rule as the stack `deploy`:
    from the settings, or else from `context` or cdk.json, or else the CDK's default."""
    setting = settings.deploy.qualifier if settings.deploy else None
    qualifier = setting or _over_cdk_json(context).get(QUALIFIER)
    return str(qualifier or DefaultStackSynthesizer.DEFAULT_QUALIFIER)


def _over_cdk_json(context: Mapping[str, object]) -> Mapping[str, Any]:
    return {**json.loads(CDK_JSON.read_text())["context"], **context}


def place_of(settings: Settings, templates: Templates, qualifier: str) -> Place:
    """Return the account, region and names for which the policy is. If the settings lack an account or
    region, the policy is for all of them in the partition `aws`. The partition is also `aws` for a region
    that is too new for the CDK."""
    region = settings.deployment.region
    roles = _properties(templates, "AWS::IAM::Role")
    keys = _properties(templates, "AWS::KMS::Key")
    return Place(
        settings.stage,
        account=settings.deployment.account or "*",
        region=region or "*",
        partition=(RegionInfo.get(region).partition if region else None) or "aws",
        qualifier=qualifier,
        configuration_sets=(settings.name(),),
        passed_to=tuple(sorted({service for role in roles for service in _trusted(role)})),
        key_tags=_identity(keys),
        boundary=settings.deploy.permissions_boundary if settings.deploy else None,
    )


def _properties(templates: Templates, resource_type: str) -> list[Mapping[str, Any]]:
    resources = (resource for template in templates for resource in template["Resources"].values())
    return [resource["Properties"] for resource in resources if resource["Type"] == resource_type]


def _trusted(role: Mapping[str, Any]) -> Iterable[str]:
    for statement in role["AssumeRolePolicyDocument"]["Statement"]:
        service = statement["Principal"]["Service"]
        yield from service if isinstance(service, list) else [service]


def _identity(keys: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Return the tags that all KMS keys have and that identify their stage. Without the tag `stage` there are
    none, because `service` is the same in all stages."""
    tags = [{(tag["Key"], tag["Value"]) for tag in key.get("Tags", ())} for key in keys]
    common = dict(set.intersection(*tags)) if tags else {}
    if "stage" not in common:
        return ()
    return tuple((key, common[key]) for key in _KEYS_OF_TAGS if key in common)


def policies_of(stage: str, qualifier: str | None = None) -> Sequence[Any]:
    """Return the policies of one stage, for `cdk bootstrap --cloudformation-execution-policies`. `qualifier`
    overrides the bootstrap of the stage. Raises SettingsError and NagError, as the app does, and
    UnscopedError for an action that no rule restricts to a stage."""
    settings, templates = read(stage, {})
    place = place_of(settings, templates, qualifier or qualifier_of(settings, {}))
    return documents(statements(needed_actions(templates), place))
