"""`mailroom rehearse`: sends, cancels, opts out and in, and puts a dead letter back, on a deployed stage."""

import secrets
from importlib.metadata import version
from typing import Annotated

import typer
from msgspec import Struct
from rich.table import Table

from mailroom_ops.options import AsJson, Stage
from mailroom_ops.rehearse.rehearsal import Rehearsal, Step
from mailroom_ops.screen import aws_faults, print_json, print_line, screen, status, table_of
from mailroom_ops.stage import aws_session


class Report(Struct, frozen=True):
    """The answer, without addresses: made to be attached to an issue."""

    stage: str
    region: str
    version: str
    ok: bool
    steps: list[Step]


def rehearse(
    stage: Stage = "dev",
    *,
    seconds: Annotated[float, typer.Option(min=1, help="The longest to wait for one message.")] = 120,
    as_json: AsJson = False,
) -> None:
    """Send mails to SES's or Resend's test addresses, cancel one, opt out and in, put a dead letter back, and
    print what should have become of each and what has.

    No mail reaches a person. The mails count in the quota, and cost less than a cent. What the command puts
    on lists, it takes off again. Exit code 1: something is not as it should be.

    Example: mailroom rehearse --stage dev
    """
    with aws_faults(stage):
        session = aws_session()
        with status("sending", quiet=as_json) as say:
            steps = [*Rehearsal(session, stage, secrets.token_hex(4), seconds, say).steps()]
    report = Report(
        stage, str(session.region_name), version("mailroom-cdk"), all(each.ok for each in steps), steps
    )
    if as_json:
        print_json(report)
    else:
        screen.print(_table(steps))
        print_line(_said(report), "green" if report.ok else "red")
    raise typer.Exit(0 if report.ok else 1)


def _table(steps: list[Step]) -> Table:
    table = table_of("", "step", "should be", "is", "accepted", "delivered", "why")
    for each in steps:
        seconds = (each.accepted_seconds, each.delivered_seconds)
        times = (f"{of} s" if of is not None else "" for of in seconds)
        table.add_row("ok" if each.ok else "WRONG", each.step, each.wanted, each.found, *times, each.said)
    return table


def _said(report: Report) -> str:
    about = f"Stage {report.stage} in {report.region}, Mailroom {report.version}: "
    wrong = [each.step for each in report.steps if not each.ok]
    if not wrong:
        return f"{about}all {len(report.steps)} steps are as they should be."
    return f"{about}wrong: {'; '.join(wrong)}. See mailroom doctor --stage {report.stage}."
