"""A stage's templates, and what they say of the place that a policy is for."""

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stacks.application import synthesize
from stacks.deploy_policy.scopes import Place
from stacks.load import load
from stacks.paths import ROOT
from stacks.settings import Settings

Templates = Sequence[Mapping[str, Any]]
NO_BUNDLES: dict[str, object] = {"aws:cdk:bundling-stacks": []}
DEPLOY = "deploy"
"""The stack that is a person's to deploy."""


def read(stage: str, context: Mapping[str, object]) -> tuple[Settings, Templates]:
    """The settings of `stage` and the templates of its stacks but `deploy`, without bundling anything.
    Raises SettingsError and NagError, as the app does."""
    stages = context.get("mailroom") or json.loads((ROOT / "cdk.json").read_text())["context"]["mailroom"]
    settings = load(stages, stage)
    with tempfile.TemporaryDirectory() as folder:
        assembly = synthesize({**context, "stage": stage, **NO_BUNDLES}, folder)
        stacks = [each for each in assembly.stacks if each.stack_name != settings.name(DEPLOY)]
        return settings, [each.template for each in stacks]


def place_of(settings: Settings, templates: Templates, qualifier: str) -> Place:
    """Where the policy is for. An account or region that is not pinned is any."""
    roles = _properties(templates, "AWS::IAM::Role")
    keys = _properties(templates, "AWS::KMS::Key")
    return Place(
        settings.stage,
        account=settings.deployment.account or "*",
        region=settings.deployment.region or "*",
        qualifier=qualifier,
        configuration_sets=tuple(
            sorted({settings.configuration_set, *filter(None, [settings.sms_configuration_set])})
        ),
        passed_to=tuple(sorted({service for role in roles for service in _trusted(role)})),
        key_tags=_common(keys),
        boundary=settings.deploy.permissions_boundary if settings.deploy else None,
    )


def _properties(templates: Templates, resource_type: str) -> list[Mapping[str, Any]]:
    resources = (each for template in templates for each in template["Resources"].values())
    return [each["Properties"] for each in resources if each["Type"] == resource_type]


def _trusted(role: Mapping[str, Any]) -> Iterable[str]:
    for statement in role["AssumeRolePolicyDocument"]["Statement"]:
        service = statement["Principal"]["Service"]
        yield from service if isinstance(service, list) else [service]


def _common(keys: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    tags = [{(each["Key"], each["Value"]) for each in key.get("Tags", ())} for key in keys]
    return tuple(sorted(set.intersection(*tags))) if tags else ()
