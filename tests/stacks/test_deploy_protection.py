"""Protection of a stage against deletion, loss and confusion with another stage."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from aws_cdk import App
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

from mailroom_stacks.ci_roles import warn_where_unpinned
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.settings import Settings
from tests.support.stacks.annotations import warnings
from tests.support.stacks.refusals import dev_with
from tests.support.stacks.templates import Template, Templates

TABLE, BUCKET, SECRET = "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret"
KEPT = (TABLE, BUCKET, SECRET)
UNLESS_ROLLED_BACK = "RetainExceptOnCreate"
"""Kept, save by the rollback of the deployment that made it."""
UNPINNED = {"removal": "retain", "termination_protection": True}
PINNED = {**UNPINNED, "account": "111122223333", "region": "eu-central-1"}


def resources(stage: Templates) -> list[tuple[str, dict[str, Any]]]:
    """Every resource of a stage, with its logical id."""
    return [each for template in stage.stacks.values() for each in template.body["Resources"].items()]


def takes_tags(kind: str) -> str | None:
    """The property of a type that holds tags, or None."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    tagging = schema.get("tagging", {})
    if tagging.get("taggable", "Tags" in schema["properties"]) and "Tags" in schema["properties"]:
        return "Tags"
    return None


def fates(stacks: Iterable[Template]) -> dict[str, set[tuple[str, str]]]:
    """For each type that holds data, what becomes of it when its stack goes, and when it is replaced."""
    found: dict[str, set[tuple[str, str]]] = {}
    for template in stacks:
        for each in template.body["Resources"].values():
            if each["Type"] in KEPT:
                fate = each["DeletionPolicy"], each["UpdateReplacePolicy"]
                found.setdefault(each["Type"], set()).add(fate)
    return found


def test_prod_keeps_tables_buckets_and_secrets_if_a_stack_is_deleted(prod: Templates) -> None:
    found = fates(prod.stacks.values())
    assert found.keys() == {*KEPT}
    for fate in set().union(*found.values()):
        assert fate in {("Retain", "Retain"), (UNLESS_ROLLED_BACK, "Retain")}


def test_a_failed_first_deployment_does_not_leave_buckets_or_secrets_with_fixed_names(
    prod: Templates,
) -> None:
    found = fates(prod.stacks.values())
    assert found[BUCKET] == found[SECRET] == {(UNLESS_ROLLED_BACK, "Retain")}


def test_a_failed_first_deployment_leaves_tables_only_if_they_are_protected(
    prod: Templates, otherwise: Templates
) -> None:
    # A resource that refuses deletion would leave its stack in ROLLBACK_FAILED.
    assert fates(prod.stacks.values())[TABLE] == {("Retain", "Retain")}
    assert fates(otherwise.stacks.values())[TABLE] == {(UNLESS_ROLLED_BACK, "Retain")}


def test_the_data_of_a_trial_stage_is_deleted_with_its_stack(dev: Templates) -> None:
    assert fates(dev.stacks.values()) == {each: {("Delete", "Delete")} for each in KEPT}


def test_prods_tables_have_deletion_protection_and_point_in_time_recovery(prod: Templates) -> None:
    tables = [each["Properties"] for _, each in resources(prod) if each["Type"] == "AWS::DynamoDB::Table"]
    assert tables
    for each in tables:
        assert each["DeletionProtectionEnabled"] is True
        assert each["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


@pytest.mark.parametrize(("which", "protected"), [("prod", True), ("dev", False)])
def test_stacks_have_termination_protection_if_the_stage_sets_it(
    request: pytest.FixtureRequest, which: str, protected: bool
) -> None:
    templates: Templates = request.getfixturevalue(which)
    artifacts = json.loads((templates.folder / "manifest.json").read_text())["artifacts"]
    stacks = [each for each in artifacts.values() if each["type"] == "aws:cloudformation:stack"]
    assert stacks
    assert {each["properties"].get("terminationProtection", False) for each in stacks} == {protected}


def test_every_taggable_resource_has_the_stages_tags(prod: Templates) -> None:
    tagged = 0
    for name, each in resources(prod):
        if not takes_tags(each["Type"]):
            continue
        tags = each.get("Properties", {}).get("Tags", [])
        pairs = tags if isinstance(tags, dict) else {tag["Key"]: tag["Value"] for tag in tags}
        wanted = {"service": "mailroom", "stage": "prod"}
        assert wanted.items() <= pairs.items(), f"{name} ({each['Type']}) has no tags"
        tagged += 1
    assert tagged > 50


def warned(settings: Settings) -> list[str]:
    """Return the warnings about a mailbox with these settings."""
    app = App()
    warn_where_unpinned(MailboxStack(app, settings), settings)
    return warnings(app)


def test_a_protected_stage_without_a_pinned_account_raises_a_warning() -> None:
    (warning,) = warned(dev_with("deployment", UNPINNED))
    assert warning.startswith("mailroom.dev.deployment: is protected but has no account or region; set both")


def test_a_protected_stage_with_a_pinned_account_raises_no_warning() -> None:
    assert not warned(dev_with("deployment", PINNED))
