"""One look at a stage, from who is asking to the diagnosis."""

import time
from collections import Counter
from collections.abc import Collection

import boto3
from botocore.exceptions import ClientError
from rich.progress import Progress, SpinnerColumn, TextColumn

from mailroom.clock import Clock, iso
from ops.doctor.checks import CHECKS
from ops.doctor.checks.clock import own
from ops.doctor.look import Look
from ops.doctor.run import Ran, run
from ops.doctor.verdict import Check, Diagnosis, worst
from ops.doctor.written import written
from ops.screen import NotDeployed, Refused, errors, unsigned


def examine(
    session: boto3.Session, stage: str, subjects: Collection[str], *, quiet: bool, clock: Clock = time.time
) -> tuple[Diagnosis, dict[str, str]]:
    """The diagnosis, and the tracebacks of checks that are broken. `quiet` shows no progress.

    Raises Refused where there is no such stage, or this machine's clock is off, and botocore's errors where
    AWS says nothing at all.
    """
    look = Look(session, stage, written(stage), clock)
    _known(look)
    _there(look)
    checks = [each for each in CHECKS if each.subject in subjects]
    ran = _run(look, checks, quiet=quiet)
    states = [each.state for each in ran.checked]
    diagnosis = Diagnosis(
        stage, look.account, look.region, iso(clock()), worst(states), dict(Counter(states)), ran.checked
    )
    return diagnosis, ran.tracebacks


def _known(look: Look) -> str:
    """The account. Where AWS does not take the signature, the time is asked of it, which needs none."""
    try:
        return look.account
    except ClientError as error:
        wrong = next((each for each in own(look) if each.fix), None) if unsigned(error) else None
        if wrong is None:
            raise
        raise Refused(f"{wrong.sentence} {wrong.fix}") from None


def _there(look: Look) -> None:
    try:
        found = look.functions
    except ClientError:
        return  # then each check that needs them says what is not allowed
    if not found:
        place = f"account {look.account}, {look.region}"
        raise NotDeployed(f"function of stage {look.stage}", place=place)


def _run(look: Look, checks: list[Check], *, quiet: bool) -> Ran:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, console=errors, disable=quiet, transient=True) as progress:
        task = progress.add_task("looking", total=len(checks))
        return run(look, checks, lambda _: progress.advance(task))
