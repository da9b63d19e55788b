"""Whether the stage is deployed, and as it should be."""

from collections.abc import Iterator

from ops.doctor.look import Look
from ops.doctor.verdict import Verdict, failed, ok, skipped, warning

PARTS = ("mailbox", "feedback", "api", "channels", "webhook", "routing", "dead-letters", "monitoring")
"""The stacks that every stage has; fax and campaigns are there where the settings have them."""
_GOOD = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"}
_ROLLED_BACK = {"UPDATE_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"}


def deployed(look: Look) -> Iterator[Verdict]:
    """Each stack there is, by CloudFormation's word for it; and those that are missing."""
    stacks = look.pages("cloudformation", "describe_stacks", "Stacks")
    found = {each["StackName"]: each["StackStatus"] for each in stacks}
    ours = {name: status for name, status in found.items() if name.startswith(look.prefix)}
    missing = [part for part in _parts(look) if f"{look.prefix}{part}" not in ours]
    if missing:
        yield failed(f"Not deployed: {', '.join(missing)}.", look.deploy)
    for name, status in sorted(ours.items()):
        if status not in _GOOD:
            yield _trouble(name, status)
    good = sum(status in _GOOD for status in ours.values())
    if good:
        yield ok(f"{good} stacks are deployed and complete.")


def settings(look: Look) -> Iterator[Verdict]:
    """Whether cdk.json has the stage, and whether the stage lives where it says."""
    written = look.written.settings
    if written is None:
        yield skipped(f"{look.written.trouble} What is deployed is not held against it.")
        return
    place = written.deployment
    wrong = [
        f"{name} {pinned}, and this is {here}"
        for name, pinned, here in (
            ("account", place.account, look.account),
            ("region", place.region, look.region),
        )
        if pinned not in (None, here)
    ]
    if wrong:
        yield failed(f"The settings pin the stage to {'; '.join(wrong)}.", "Use that account's credentials.")
    elif look.protected and not (place.account and place.region):
        yield warning(
            "The settings do not say in which account and region the stage lives.",
            f"Set mailroom.{look.stage}.deployment.account and .region.",
        )
    else:
        yield ok("The settings can be read, and the stage lives where they say.")


def _parts(look: Look) -> tuple[str, ...]:
    written = look.written.settings
    fax = ("fax",) if written and written.fax else ()
    campaigns = ("campaigns",) if written and written.campaigns.enabled else ()
    return (*PARTS, *fax, *campaigns)


def _trouble(name: str, status: str) -> Verdict:
    events = f"aws cloudformation describe-stack-events --stack-name {name}"
    if status in _ROLLED_BACK:
        return warning(f"{name} went back to its last state: {status}.", events)
    if status.endswith("_IN_PROGRESS"):
        return warning(f"{name} is being changed: {status}.", "Wait for it, and run it again.")
    return failed(f"{name} is in the state {status}.", events)
