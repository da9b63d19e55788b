"""The local stage's programs start from the root, where nothing of the functions is on the path."""

import os
import subprocess
import sys

import pytest

from tests.support import ROOT


@pytest.mark.parametrize(
    "module",
    [
        "mailroom_local.commands",
        "lab.demo.campaign",
        "mailroom_local.database.postgres",
        "mailroom_local.providers.server",
        "mailroom_local.pump.driver",
    ],
)
def test_a_program_of_the_local_stage_finds_what_it_imports(module: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", f"import {module}"]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
