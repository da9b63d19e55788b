"""Whether the stage is deployed as it should be: stacks and tables."""

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


EXPIRING = ("mailbox", "ledger", "campaign-runs", "dead-letters")
"""Tables whose items go when their `ttl` has passed."""
_EXPIRY = {"ENABLED", "ENABLING"}


def protection(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Active, protected from deletion, and recoverable."""
    names = _tables(stage)
    if not names:
        yield failed("The stage has no tables.", stage.deploy)
        return
    client, troubles = stage.client("dynamodb"), 0
    for name in names:
        table = client.describe_table(TableName=name)["Table"]
        said = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        recovery = said.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus")
        found = list(_table(stage, name, table, recoverable=recovery == "ENABLED"))
        troubles += len(found)
        yield from found
    if not troubles:
        backups = " The local AWS keeps no backups." if stage.local else ""
        yield ok(f"{len(names)} tables are active, and protected as the settings want it.{backups}")


def expiry(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """DynamoDB's deletion of what is over."""
    if stage.local:
        yield skipped("The local AWS does not take expiry from CloudFormation.")
        return
    client, good = stage.client("dynamodb"), 0
    for name in _tables(stage):
        if name.removeprefix(stage.prefix) not in EXPIRING:
            continue
        said = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        if said.get("TimeToLiveStatus") in _EXPIRY:
            good += 1
        else:
            yield warning(
                f"{name} keeps everything for ever: expired items are not deleted.",
                f"aws dynamodb update-time-to-live --table-name {name} "
                "--time-to-live-specification Enabled=true,AttributeName=ttl",
            )
    if good:
        yield ok(f"{good} tables delete expired items.")


def _tables(stage: ExaminedStage) -> list[str]:
    found = stage.pages("dynamodb", "list_tables", "TableNames")
    return [each for each in found if each.startswith(stage.prefix)]


def _table(
    stage: ExaminedStage, name: str, table: dict[str, object], *, recoverable: bool
) -> Iterator[CheckFinding]:
    settings = stage.configured.settings
    if table["TableStatus"] != "ACTIVE":
        yield warning(
            f"{name} is {str(table['TableStatus']).lower()}.", "Wait until it is done, then run doctor again."
        )
    if settings is None:
        return
    wanted = settings.deployment
    if wanted.deletion_protection and not table.get("DeletionProtectionEnabled"):
        yield failed(
            f"{name} is not protected from deletion.",
            f"aws dynamodb update-table --table-name {name} --deletion-protection-enabled",
        )
    if wanted.point_in_time_recovery and not recoverable and not stage.local:
        yield stage.failed_if_protected(
            f"{name} cannot be taken back to an earlier time.",
            f"aws dynamodb update-continuous-backups --table-name {name} "
            "--point-in-time-recovery-specification PointInTimeRecoveryEnabled=true",
        )
