"""Checks that the stage's stacks are deployed."""

from collections.abc import Iterator
from typing import Any

from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, failed, ok, warning
from mailroom_stacks.settings.settings import Settings

_GOOD = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"}
_ROLLED_BACK = {"UPDATE_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"}


def deployed(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Report the CloudFormation status of each stack, and the stacks that are missing."""
    ours = {stack["StackName"]: stack["StackStatus"] for stack in stacks_of(stage)}
    parts = stack_parts(stage.settings)
    missing = [part for part in parts if f"{stage.prefix}{part}" not in ours]
    if missing:
        yield failed(f"Not deployed: {', '.join(missing)}.", stage.deploy)
    for name, status in sorted(ours.items()):
        if status not in _GOOD:
            yield _trouble(name, status)
    good = sum(status in _GOOD for status in ours.values())
    if good:
        yield ok(f"{good} stacks are deployed and complete.")


def stacks_of(stage: ExaminedStage) -> list[dict[str, Any]]:
    """Return the stage's stacks, as CloudFormation describes them."""
    stacks = stage.pages("cloudformation", "describe_stacks", "Stacks")
    return [stack for stack in stacks if stack["StackName"].startswith(stage.prefix)]


def stack_parts(settings: Settings | None) -> list[str]:
    """Return the short names of a stage's stacks; without settings, of the stacks that every stage has. The
    stack `deploy` is left out, because it is optional and deployed separately."""
    stacks = {
        **dict.fromkeys(("mailbox", "feedback", "api", "channels"), True),
        "fax": settings and settings.fax,
        **dict.fromkeys(("webhook", "routing"), True),
        "campaigns": settings and settings.campaigns.enabled,
        **dict.fromkeys(("dead-letters", "monitoring"), True),
    }
    return [part for part, deployed in stacks.items() if deployed]


def _trouble(name: str, status: str) -> CheckFinding:
    events = f"aws cloudformation describe-stack-events --stack-name {name}"
    if status in _ROLLED_BACK:
        return warning(f"{name} was rolled back to its last state: {status}.", events)
    if status.endswith("_IN_PROGRESS"):
        return warning(f"{name} is being changed: {status}.", "Wait until it is done, then run doctor again.")
    return failed(f"{name} is in the state {status}.", events)
