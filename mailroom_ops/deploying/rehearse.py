"""The command `rehearse`: tests sends, a cancellation, an opt-out, an opt-in and a redrive on a stage."""

import platform
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from importlib.metadata import version
from typing import Annotated

import typer
from msgspec import Struct
from rich.table import Table

from mailroom_ops.deploying.rehearsal import Rehearsal, Step
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import aws_faults, print_json, print_line, screen, status, table_of

PACKAGES = {"mailroom": "mailroom-cdk", "cdk": "aws-cdk-lib", "boto3": "boto3"}
"""Packages whose versions are in a report, by their names in the report."""


class Report(Struct, frozen=True):
    """Result of a rehearsal that can be published: it contains no addresses, account or name of the stage."""

    day: str
    versions: Mapping[str, str]
    region: str
    ok: bool
    steps: Sequence[Step]


def report_of(steps: Sequence[Step], region: str, day: date) -> Report:
    """Return the report of a rehearsal that has ended."""
    versions = {name: version(package) for name, package in PACKAGES.items()}
    versions["python"] = platform.python_version()
    return Report(f"{day}", versions, region, all(step.ok for step in steps), steps)


def rehearse(
    stage: Stage = "dev",
    *,
    seconds: Annotated[float, typer.Option(min=0.1, help="Maximum seconds to wait for one message.")] = 120,
    as_json: AsJson = False,
) -> None:
    """Send test mails through a stage, and check each.

    The command sends mails to test addresses of SES or Resend, cancels one, opts out and in, puts a dead
    letter back, and prints the expected and the real status of each mail.

    The mails reach test addresses only, count towards the quota, and cost less than a cent. The command
    removes its suppressions and opt-outs again. Exit code 1: a status differs from the expected one.

    Example: mailroom rehearse --stage dev
    """
    with aws_faults(stage):
        session = aws_session()
        with status("sending", quiet=as_json) as say:
            steps = [*Rehearsal(session, stage, secrets.token_hex(4), seconds, say).steps()]
    report = report_of(steps, f"{session.region_name}", datetime.now(UTC).date())
    if as_json:
        print_json(report)
    else:
        screen.print(_table(steps))
        print_line(_verdict(report, stage), "green" if report.ok else "red")
    raise typer.Exit(0 if report.ok else 1)


def _table(steps: list[Step]) -> Table:
    table = table_of("", "step", "should be", "is", "by", "seconds from the put", "why")
    for step in steps:
        seconds = ", ".join(f"{station} {time}" for station, time in step.seconds.items())
        result = "ok" if step.ok else "WRONG"
        table.add_row(result, step.step, step.expected, step.outcome, step.provider, seconds, step.why)
    return table


def _verdict(report: Report, stage: str) -> str:
    place = f"Stage {stage} in {report.region}, Mailroom {report.versions['mailroom']}: "
    wrong = [step.step for step in report.steps if not step.ok]
    if not wrong:
        return f"{place}all {len(report.steps)} steps had the expected status."
    return f"{place}wrong: {'; '.join(wrong)}. See mailroom doctor --stage {stage}."
