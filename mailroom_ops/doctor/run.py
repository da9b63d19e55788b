"""The examination of a stage: its checks run in parallel."""

import re
import time
import traceback
from collections import Counter
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as Unconnected

from mailroom.clock import Clock, iso
from mailroom.errors import quantity
from mailroom_ops.doctor.checks import CHECKS, Check
from mailroom_ops.doctor.examined_stage import ExaminedStage, settings_or_trouble
from mailroom_ops.doctor.report import Checked, CheckFinding, Diagnosis, failed, skipped, warning, worst
from mailroom_ops.shared.screen import NotDeployed, status

if TYPE_CHECKING:
    import boto3

_DENIED = re.compile(r"AccessDenied|AuthorizationError|Unauthorized|NotAuthorized|^403$|^Forbidden$")
_ACTION = re.compile(r"not authorized to perform:? ([\w-]+:\w+)")
_UNKNOWN = re.compile(r"InvalidAction|UnknownOperation|NotImplemented|UnsupportedOperation|^400$|^404$|^501$")


def examine(
    session: "boto3.Session", name: str, subjects: Collection[str], *, quiet: bool, clock: Clock = time.time
) -> Diagnosis:
    """Run the checks of these subjects on a stage, and return the diagnosis. `quiet` hides the progress.
    Raises NotDeployed, and botocore's errors if AWS rejects the credentials."""
    stage = ExaminedStage(session, name, settings_or_trouble(name), clock)
    _require(stage)
    checks = [check for check in CHECKS if check.subject in subjects]
    with status(quantity(len(checks), "check"), quiet=quiet):
        checked = run(stage, checks)
    states = [finding.state for finding in checked]
    return Diagnosis(
        name, stage.account, stage.region, iso(clock()), worst(states), dict(Counter(states)), checked
    )


def _require(stage: ExaminedStage) -> None:
    """Raise NotDeployed if the stage has no function."""
    account = stage.account
    try:
        functions = stage.functions
    except ClientError:
        # The permission to list functions is missing: each check that needs functions reports it.
        return
    if not functions:
        raise NotDeployed(f"function of stage {stage.name}", place=f"account {account}, {stage.region}")


def run(stage: ExaminedStage, checks: Sequence[Check]) -> list[Checked]:
    """Run all checks in parallel. An exception becomes a finding."""
    # Each request has its own time-out, so no check takes long.
    with ThreadPoolExecutor(max(1, len(checks))) as pool:
        findings = [*pool.map(partial(_findings, stage), checks)]
    return [
        Checked(check.subject, check.name, finding.state, finding.sentence, finding.fix)
        for check, of_check in zip(checks, findings, strict=True)
        for finding in of_check
    ]


def _findings(stage: ExaminedStage, check: Check) -> list[CheckFinding]:
    findings: list[CheckFinding] = []
    try:
        findings.extend(check.run(stage))
    except (ClientError, HTTPClientError, Unconnected) as error:
        return [*findings, _of_error(stage, error)]
    except Exception as error:  # noqa: BLE001 - one broken check must not hide the others
        # The finding has only the error's class: its message may quote a secret.
        place = traceback.extract_tb(error.__traceback__)[-1]
        sentence = f"The check itself is broken: {type(error).__name__}."
        return [*findings, failed(sentence, f"Report it: {place.filename}, line {place.lineno}.")]
    return findings or [skipped("There was nothing to check.")]


def _of_error(stage: ExaminedStage, error: Exception) -> CheckFinding:
    """Return the finding for an exception of a check: no response, a missing permission, an operation that
    the emulator does not support, or another error."""
    if not isinstance(error, ClientError):
        return failed(f"No response: {error}", "Check the network of this machine, and the region.")
    code = error.response.get("Error", {}).get("Code", "")
    operation = error.operation_name
    if _DENIED.search(code):
        match = _ACTION.search(error.response["Error"].get("Message", ""))
        needed = match[1] if match else f"the action {operation}"
        return warning(
            f"Could not check: the credentials need {needed}.", "Allow it, or use other credentials."
        )
    if stage.local and _UNKNOWN.search(code):
        return skipped(f"The emulated AWS does not support {operation}.")
    return failed(f"AWS answered {operation} with {code}.", "See the AWS console, or run doctor again.")
