"""Checks that the stage's stacks are deployed, and that its second copy is recent."""

from collections.abc import Iterator
from typing import Any

from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, failed, ok, skipped, warning
from mailroom_ops.repair.exported import TABLES
from mailroom_ops.shared.refusals import ended
from mailroom_stacks.settings.settings import Settings

_GOOD = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"}
_ROLLED_BACK = {"UPDATE_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"}
_EXPORT_HOURS = 48
"""Maximum age of the newest export in hours: exports begin once a day, and one may be late."""


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


def second_copy(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Report the newest export of each table that the setting `deployment.second_copy` exports. An export may
    fail after its start, when an alarm cannot notice it any more."""
    copy = stage.settings and stage.settings.deployment.second_copy
    if not copy:
        yield skipped(stage.trouble) if stage.trouble else ok("The setting deployment.second_copy is off.")
        return
    client = stage.client("dynamodb")
    for table in TABLES:
        arn = stage.arn("dynamodb", f"table/{stage.prefix}{table}")
        # DynamoDB lists the newest export first.
        arns = [export["ExportArn"] for export in client.list_exports(TableArn=arn)["ExportSummaries"]]
        exports = (client.describe_export(ExportArn=arn)["ExportDescription"] for arn in arns)
        yield _of_export(stage, table, next((row for row in exports if row["S3Bucket"] == copy.bucket), None))


def _of_export(stage: ExaminedStage, table: str, export: dict[str, Any] | None) -> CheckFinding:
    fix = "See `mailroom docs second-copy`."
    if export is None:
        return failed(f"{table} has not been exported yet; the first export begins with the deployment.", fix)
    if export["ExportStatus"] == "FAILED":
        reason = export.get("FailureMessage", "")
        return failed(ended(f"The newest export of {table} has failed: {reason}"), fix)
    hours = (stage.clock() - export["StartTime"].timestamp()) / 3600
    if hours > _EXPORT_HOURS:
        return failed(f"The newest export of {table} began {hours:.0f} hours ago.", fix)
    return ok(f"The newest export of {table} began {hours:.0f} hours ago: {export['ExportStatus'].lower()}.")


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
        "console": settings and settings.console,
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
