"""The command `doctor`: its options and its output."""

from typing import Annotated

import typer
from rich.text import Text

from mailroom.channels.contracts import CONTRACTS
from mailroom_ops.doctor.report import Diagnosis, State
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import (
    aws_faults,
    fold,
    plain,
    print_answer,
    print_line,
    screen,
    table_of,
    whole,
)


def doctor(
    stage: Stage = "dev",
    only: Annotated[
        str,
        typer.Option(
            help="Check only these subjects, separated by commas: stacks, functions, queues, alarms, and "
            f"channels: {', '.join(CONTRACTS)}.",
            show_default="all",
        ),
    ] = "",
    *,
    as_json: AsJson = False,
) -> None:
    """Check that a stage can send, and that alarms reach somebody.

    The command checks senders with SPF and DMARC, sandbox, quotas, reputation, secrets, the providers'
    credentials (by read-only requests), event source mappings, dead letters and alarms, and prints the price
    of the account's plan at SES. Each check is ok, a warning or failed, with the steps to fix it. The command
    changes nothing. It does not detect manual changes of deployed resources: for these, use
    `mailroom cdk -- drift -c stage=prod`.

    Exit code 1: a check failed. 2: the stage could not be examined.

    Example: mailroom doctor --stage prod --only mail,alarms
    """
    # These imports load the packages for SES, Twilio and the settings, which other commands do not need.
    from mailroom_ops.doctor.run import examine

    subjects = _subjects(only)
    with aws_faults(stage):
        diagnosis = examine(aws_session(), stage, subjects, quiet=as_json)
    print_answer(diagnosis, show, as_json=as_json)
    raise typer.Exit(1 if diagnosis.state == "failed" else 0)


def _subjects(only: str) -> list[str]:
    from mailroom_ops.doctor.checks import SUBJECTS

    subjects = [subject.strip() for subject in only.split(",") if subject.strip()]
    unknown = [subject for subject in subjects if subject not in SUBJECTS]
    if unknown:
        raise typer.BadParameter(f"--only: {', '.join(unknown)} is unknown; use {', '.join(SUBJECTS)}.")
    return subjects or list(SUBJECTS)


_STYLES: dict[State, str] = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}


def show(diagnosis: Diagnosis) -> None:
    """Print a table of the findings, then the fixes, unwrapped so that they can be copied."""
    place = f"account {diagnosis.account}, {diagnosis.region}"
    print_line(f"Stage {diagnosis.stage}, {place}", "bold")
    rows = (
        (finding.subject, Text(finding.state, style=_STYLES[finding.state]), finding.check, finding.sentence)
        for finding in diagnosis.checks
    )
    screen.print(table_of("", whole("state"), whole("check"), fold("what was found"), rows=rows))
    for finding in diagnosis.checks:
        if finding.fix and finding.state in ("failed", "warning"):
            subject = Text(f"{finding.subject}, {finding.check}: ", style=_STYLES[finding.state])
            screen.print(Text().join((subject, plain(finding.sentence))), soft_wrap=True)
            print_line(f"  → {finding.fix}")
    counts = Text()
    for state, style in _STYLES.items():
        counts.append(f"{diagnosis.counts.get(state, 0)} {state}  ", style=style)
    screen.print(counts)
