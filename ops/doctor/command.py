"""`doctor`: look at a stage from all sides."""

from typing import Annotated

import boto3
import typer

from ops.screen import AsJson, Stage, aws_faults, errors, screen, tell

Only = Annotated[
    str,
    typer.Option(
        help="Only these subjects, with commas between: stacks, mail, sms, push, fax, webhook, functions, "
        "queues, alarms, tables, clock.",
        show_default="all",
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Print the traceback of a check that is broken.")]


def doctor(stage: Stage = "dev", only: Only = "", *, as_json: AsJson = False, debug: Debug = False) -> None:
    """Look whether a stage can send, and whether somebody would hear if it could not.

    Senders, sandbox, quotas, reputation, secrets, the providers' credentials (by questions that change
    nothing), mappings, dead letters, alarms, tables and this machine's clock: each is ok, a warning or
    failed, with what mends it. What is deployed is held against cdk.json. It changes nothing; where the stage
    faxes, a small object is laid into the payload bucket, fetched and deleted.

    Exit code 1: something failed. 2: it could not look at all.

    Example: mailroom doctor --stage prod --only mail,alarms
    """
    # With them come SES's, Twilio's and the settings' packages, which the other commands need not wait for.
    from ops.doctor.examination import examine
    from ops.doctor.screen import show

    subjects = _subjects(only)
    with aws_faults(stage):
        diagnosis, tracebacks = examine(boto3.Session(), stage, subjects, quiet=as_json)
    for name, trace in tracebacks.items() if debug else ():
        errors.print(f"{name}:\n{trace}", markup=False, soft_wrap=True)
    if as_json:
        tell(diagnosis)
    else:
        show(diagnosis, screen)
    raise typer.Exit(1 if diagnosis.state == "failed" else 0)


def _subjects(only: str) -> list[str]:
    from ops.doctor.checks import SUBJECTS

    wanted = [each.strip() for each in only.split(",") if each.strip()]
    unknown = [each for each in wanted if each not in SUBJECTS]
    if unknown:
        raise typer.BadParameter(f"--only: {', '.join(unknown)} is none of {', '.join(SUBJECTS)}.")
    return wanted or list(SUBJECTS)
