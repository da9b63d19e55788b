"""Whether the tables are protected as the settings want it, and forget what they should."""

from collections.abc import Iterator

from ops.doctor.look import Look
from ops.doctor.verdict import Verdict, failed, ok, skipped, warning

EXPIRING = ("mailbox", "ledger", "campaign-runs", "dead-letters")
"""Those whose items go when their `ttl` has passed."""
_EXPIRY = {"ENABLED", "ENABLING"}


def protection(look: Look) -> Iterator[Verdict]:
    """Active, protected from deletion, and recoverable."""
    names = _tables(look)
    if not names:
        yield failed("The stage has no tables.", look.deploy)
        return
    client, troubles = look.client("dynamodb"), 0
    for name in names:
        table = client.describe_table(TableName=name)["Table"]
        said = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        recovery = said.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus")
        found = list(_table(look, name, table, recoverable=recovery == "ENABLED"))
        troubles += len(found)
        yield from found
    if not troubles:
        backups = " The local AWS keeps no backups." if look.local else ""
        yield ok(f"{len(names)} tables are active, and protected as the settings want it.{backups}")


def expiry(look: Look) -> Iterator[Verdict]:
    """DynamoDB's deletion of what is over."""
    if look.local:
        yield skipped("The local AWS does not take expiry from CloudFormation.")
        return
    client, good = look.client("dynamodb"), 0
    for name in _tables(look):
        if name.removeprefix(look.prefix) not in EXPIRING:
            continue
        said = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        if said.get("TimeToLiveStatus") in _EXPIRY:
            good += 1
        else:
            yield warning(
                f"{name} keeps everything for ever: nothing deletes what is over.",
                f"aws dynamodb update-time-to-live --table-name {name} "
                "--time-to-live-specification Enabled=true,AttributeName=ttl",
            )
    if good:
        yield ok(f"{good} tables forget what is over.")


def _tables(look: Look) -> list[str]:
    found = look.pages("dynamodb", "list_tables", "TableNames")
    return [each for each in found if each.startswith(look.prefix)]


def _table(look: Look, name: str, table: dict[str, object], *, recoverable: bool) -> Iterator[Verdict]:
    settings = look.written.settings
    if table["TableStatus"] != "ACTIVE":
        yield warning(f"{name} is {str(table['TableStatus']).lower()}.", "Wait for it, and run it again.")
    if settings is None:
        return
    wanted = settings.deployment
    if wanted.deletion_protection and not table.get("DeletionProtectionEnabled"):
        yield failed(
            f"{name} is not protected from deletion.",
            f"aws dynamodb update-table --table-name {name} --deletion-protection-enabled",
        )
    if wanted.point_in_time_recovery and not recoverable and not look.local:
        verdict = failed if look.protected else warning
        yield verdict(
            f"{name} cannot be taken back to an earlier time.",
            f"aws dynamodb update-continuous-backups --table-name {name} "
            "--point-in-time-recovery-specification PointInTimeRecoveryEnabled=true",
        )
