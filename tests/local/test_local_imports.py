"""The local stage's programs start from the root, without the functions' folders on the path."""

import os
import subprocess
import sys

from tests.support import ROOT

PROGRAMS = (
    *("mailroom_local.commands", "mailroom_local.database.postgres", "mailroom_local.providers.server"),
    *("mailroom_local.pump.driver", "lab.demo.killed_campaign"),
)


def test_the_programs_of_the_local_stage_can_be_imported() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", f"import {', '.join(PROGRAMS)}"]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
