"""Examines a stage: runs its checks beside each other, each in bounded time."""

import re
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as Unconnected

from mailroom.clock import Clock, iso
from mailroom_ops.doctor.checks import CHECKS, Check
from mailroom_ops.doctor.examined_stage import ConfiguredStage, ExaminedStage
from mailroom_ops.doctor.report import Checked, CheckFinding, Diagnosis, failed, skipped, warning, worst
from mailroom_ops.shared.screen import NotDeployed, bar

if TYPE_CHECKING:
    import boto3

SECONDS = 60.0
"""What all checks may take together; each call has bounds of its own, far below."""
_DENIED = re.compile(r"AccessDenied|AuthorizationError|Unauthorized|NotAuthorized|^403$|^Forbidden$")
_ACTION = re.compile(r"not authorized to perform:? ([\w-]+:\w+)")
_UNKNOWN = re.compile(r"InvalidAction|UnknownOperation|NotImplemented|UnsupportedOperation|^400$|^404$|^501$")


@dataclass
class ChecksRun:
    """What came of the checks, in their order; and the tracebacks of those that are broken themselves."""

    checked: list[Checked] = field(default_factory=list)
    tracebacks: dict[str, str] = field(default_factory=dict)


def examine(
    session: "boto3.Session", name: str, subjects: Collection[str], *, quiet: bool, clock: Clock = time.time
) -> tuple[Diagnosis, dict[str, str]]:
    """The diagnosis, and the tracebacks of checks that are broken. `quiet` shows no progress.

    Raises NotDeployed, and botocore's errors if AWS does not take the credentials.
    """
    stage = ExaminedStage(session, name, ConfiguredStage.read(name), clock)
    _require(stage)
    checks = [each for each in CHECKS if each.subject in subjects]
    with bar("looking", quiet=quiet) as advance:
        ran = run(stage, checks, lambda ended: advance(ended, len(checks)))
    states = [each.state for each in ran.checked]
    diagnosis = Diagnosis(
        name, stage.account, stage.region, iso(clock()), worst(states), dict(Counter(states)), ran.checked
    )
    return diagnosis, ran.tracebacks


def _require(stage: ExaminedStage) -> None:
    """Raise NotDeployed if the stage has no function."""
    account = stage.account
    try:
        found = stage.functions
    except ClientError:
        return  # then each check that needs them says what is not allowed
    if not found:
        raise NotDeployed(f"function of stage {stage.name}", place=f"account {account}, {stage.region}")


def run(
    stage: ExaminedStage,
    checks: Sequence[Check],
    ended: Callable[[int], None] = lambda _: None,
    seconds: float = SECONDS,
) -> ChecksRun:
    """Run all checks; `ended` takes how many have ended. A check that raises becomes a finding."""
    results = SimpleQueue[tuple[int, list[CheckFinding], str]]()
    for number, check in enumerate(checks):
        # Daemons: one that hangs must not keep the command from ending.
        threading.Thread(target=_one, args=(stage, number, check, results), daemon=True).start()
    ran, findings = ChecksRun(), dict[int, list[CheckFinding]]()
    deadline = time.monotonic() + seconds
    with suppress(Empty):
        while len(findings) < len(checks):
            number, found, trace = results.get(timeout=max(0.0, deadline - time.monotonic()))
            findings[number] = found
            if trace:
                ran.tracebacks[checks[number].name] = trace
            ended(len(findings))
    late = [warning(f"Could not check: no answer within {seconds:.0f} s.", "Run it again.")]
    for number, check in enumerate(checks):
        for each in findings.get(number, late):
            ran.checked.append(Checked(check.subject, check.name, each.state, each.sentence, each.fix))
    return ran


def _one(
    stage: ExaminedStage, number: int, check: Check, results: SimpleQueue[tuple[int, list[CheckFinding], str]]
) -> None:
    """Run a check. Puts its number, its findings, and the traceback of one that is broken."""
    found: list[CheckFinding] = []
    trace = ""
    try:
        found.extend(check.run(stage))
        found = found or [skipped("There was nothing to check.")]
    except (ClientError, HTTPClientError, Unconnected) as error:
        found.append(_of_error(stage, error))
    except Exception as error:  # noqa: BLE001 - the command shows it with --debug, and fails
        trace = traceback.format_exc()
        sentence = f"The check itself is broken: {type(error).__name__}."
        found.append(failed(sentence, "Run it with --debug, and report it."))
    results.put((number, found, trace))


def _of_error(stage: ExaminedStage, error: Exception) -> CheckFinding:
    """What AWS's error says of a check: may it not be asked, is it not known there, or is something wrong."""
    if not isinstance(error, ClientError):
        return failed(f"No answer: {error}", "Check the network from here, and the region.")
    code = error.response.get("Error", {}).get("Code", "")
    operation = error.operation_name
    if _DENIED.search(code):
        said = _ACTION.search(error.response["Error"].get("Message", ""))
        needed = said[1] if said else f"the action {operation}"
        return warning(f"Could not check: needs {needed}.", "Allow it, or run it with other credentials.")
    if stage.local and _UNKNOWN.search(code):
        return skipped(f"The local AWS does not know {operation}.")
    return failed(f"AWS answered {operation} with {code}.", "See the console, or run doctor again.")
