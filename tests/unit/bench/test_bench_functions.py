"""The bench knows every function of the local stage, and what each needs to be imported."""

import subprocess
import sys

import pytest

from lab.bench.deployed import CLIENTS
from lab.bench.functions import clean
from tests.support import ROOT

OF_RESEND = {"send_mail_resend", "resend_events"}
"""Handlers that a stage has in which Resend sends the mails; the bench's has SES."""
BUNDLED = {"collect", "compose"}
"""They read a file of their bundle: `make short` imports them from there."""


def test_each_function_of_its_stage_is_measured() -> None:
    assert CLIENTS.keys() | OF_RESEND == {each.stem for each in (ROOT / "lambdas").glob("*.py")}


@pytest.mark.process
def test_each_of_them_can_be_imported_in_its_environment() -> None:
    environment = clean(PYTHONPATH=str(ROOT / "lambdas"))
    command = [sys.executable, "-c", f"import {', '.join(CLIENTS.keys() - BUNDLED)}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
