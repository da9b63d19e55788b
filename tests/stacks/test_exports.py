"""A stack's export stays while another deployed stack imports it, or the deployment fails: CloudFormation
updates the stack that exports before those that import."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.stacks.templates import Template, Templates


def exports(template: Template) -> set[str]:
    """The names that others import."""
    outputs = template.body.get("Outputs", {}).values()
    return {each["Export"]["Name"] for each in outputs if "Export" in each}


def imports(part: Any) -> Iterator[str]:
    """The names that a template, or a part of one, asks others for."""
    if isinstance(part, dict):
        if "Fn::ImportValue" in part:
            yield part["Fn::ImportValue"]
        for each in part.values():
            yield from imports(each)
    elif isinstance(part, list):
        for each in part:
            yield from imports(each)


def missing(deployed: Mapping[str, Template], wanted: Mapping[str, Template]) -> set[str]:
    """Return the exports that deployed stacks import, and that the same stacks would no longer have."""
    needed = {name for each in deployed.values() for name in imports(each.body)}
    given = {name for each in deployed.values() for name in exports(each)}
    assert given >= needed
    return needed - {name for each in wanted.values() for name in exports(each)}


def test_a_change_of_settings_does_not_remove_an_export_that_a_deployed_stack_imports(
    dev: Templates, otherwise: Templates
) -> None:
    assert not missing(dev.stacks, otherwise.stacks)


def test_a_stage_can_remove_its_last_campaign_and_then_its_campaigns_stack(
    whole: Templates, dev: Templates
) -> None:
    after = {**dev.stacks, "campaigns": whole["campaigns"]}
    assert not missing(whole.stacks, after)
    imported = {name for each in dev.stacks.values() for name in imports(each.body)}
    assert exports(whole["campaigns"])
    assert not imported & exports(whole["campaigns"])


def test_the_exports_of_the_api_stack_do_not_depend_on_the_domain_of_the_api(
    dev: Templates, otherwise: Templates
) -> None:
    assert exports(otherwise["api"]) == exports(dev["api"])
