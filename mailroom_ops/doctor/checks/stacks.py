"""Whether the stage is deployed as it should be: its stacks, account and region."""

from collections.abc import Iterator

from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, failed, ok, skipped, warning
from mailroom_ops.shared.deployed_stage import stack_parts

_GOOD = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"}
_ROLLED_BACK = {"UPDATE_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"}


def deployed(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Each stack there is, by CloudFormation's word for it; and those that are missing."""
    stacks = stage.pages("cloudformation", "describe_stacks", "Stacks")
    found = {each["StackName"]: each["StackStatus"] for each in stacks}
    ours = {name: status for name, status in found.items() if name.startswith(stage.prefix)}
    # The stack `deploy` is a person's to deploy.
    parts = [part for part in stack_parts(stage.configured.settings) if part != "deploy"]
    missing = [part for part in parts if f"{stage.prefix}{part}" not in ours]
    if missing:
        yield failed(f"Not deployed: {', '.join(missing)}.", stage.deploy)
    for name, status in sorted(ours.items()):
        if status not in _GOOD:
            yield _trouble(name, status)
    good = sum(status in _GOOD for status in ours.values())
    if good:
        yield ok(f"{good} stacks are deployed and complete.")


def pinned(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Whether cdk.json has the stage, and whether the stage lives where it says."""
    settings = stage.configured.settings
    if settings is None:
        yield skipped(f"{stage.configured.trouble} It is not compared with what is deployed.")
        return
    place = settings.deployment
    wrong = [
        f"{name} {pinned}, and this is {here}"
        for name, pinned, here in (
            ("account", place.account, stage.account),
            ("region", place.region, stage.region),
        )
        if pinned not in (None, here)
    ]
    if wrong:
        yield failed(f"The settings pin the stage to {'; '.join(wrong)}.", "Use that account's credentials.")
    elif stage.protected and not (place.account and place.region):
        yield warning(
            "The settings do not say in which account and region the stage lives.",
            f"Set mailroom.{stage.name}.deployment.account and .region.",
        )
    else:
        yield ok("The settings can be read, and the stage lives where they say.")


def _trouble(name: str, status: str) -> CheckFinding:
    events = f"aws cloudformation describe-stack-events --stack-name {name}"
    if status in _ROLLED_BACK:
        return warning(f"{name} went back to its last state: {status}.", events)
    if status.endswith("_IN_PROGRESS"):
        return warning(f"{name} is being changed: {status}.", "Wait until it is done, then run doctor again.")
    return failed(f"{name} is in the state {status}.", events)
