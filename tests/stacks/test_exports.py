"""A stack's export stays while another deployed stack imports it, or the deployment fails: CloudFormation
updates the stack that exports before those that import."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.stacks.refusals import STAGES
from tests.support.stacks.templates import Template, Templates
from tests.support.stacks.variants import JWT, PUSH, PUSH_ROW, TOLD, variant

ANY_TIME: dict[str, dict[str, object]] = {
    "an address of the API's own": {"api.public_url": "https://mail.example.com"},
    "callers with tokens": {"api.jwt": JWT},
    "another sender of SMS": {"sms": {**STAGES["dev"]["sms"], "sender": "+12025550199"}},
    "pushes": {"push": PUSH, "channels.push": PUSH_ROW},
    "somebody who is told": {"monitoring": TOLD},
}
"""What somebody may set on a stage that is deployed, without any order of stacks to keep to."""


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
    """What stacks that are deployed import, and the same stacks would no longer export."""
    needed = {name for each in deployed.values() for name in imports(each.body)}
    given = {name for each in deployed.values() for name in exports(each)}
    assert given >= needed
    return needed - {name for each in wanted.values() for name in exports(each)}


@pytest.mark.parametrize("changes", ANY_TIME.values(), ids=ANY_TIME.keys())
def test_no_export_that_a_deployed_stack_imports_goes_with_a_setting(
    dev: Templates, changes: dict[str, object]
) -> None:
    changed = variant(changes)
    assert not missing(dev.stacks, changed.stacks)


def test_the_apis_exports_do_not_depend_on_its_address(dev: Templates) -> None:
    addressed = variant({"api.public_url": "https://mail.example.com"})
    assert exports(addressed["api"]) == exports(dev["api"])
    assert not missing(addressed.stacks, dev.stacks)  # and the way back
