"""CI runs each tool in its short form, which sets up what it needs and leaves the recorded figures alone."""

import re
import subprocess
import sys

import pytest

from tests.support import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()
TOOLS = ("bench", "proof", "chaos", "oracle")
SETUP = {"bench": "setup", "proof": ".venv/.ready", "chaos": "setup", "oracle": ".venv/.ready"}
"""What has to be installed for each: `setup` brings the emulator, for those that start a stage."""


def test_ci_runs_all_of_them_before_anything_else_has_set_up_what_they_need() -> None:
    run = (ROOT / ".ci" / "run").read_text()
    assert re.findall(r"^make (\S+)$", run, re.MULTILINE) == ["short", "check", "test"]
    assert re.search(rf"^TOOLS = {' '.join(TOOLS)}$", MAKEFILE, re.MULTILINE)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_sets_up_what_it_starts(tool: str) -> None:
    (needs,) = re.findall(rf"^{tool}: (.*?) ##", MAKEFILE, re.MULTILINE)
    assert SETUP[tool] in needs.split()


@pytest.mark.process
@pytest.mark.parametrize(("short", "folder"), [("1", ".local/short"), ("", "lab/bench")])
def test_only_the_whole_form_writes_where_figures_are_committed(short: str, folder: str) -> None:
    command = [sys.executable, "-c", "from lab import figures; print(figures('results.json'))"]
    written = subprocess.run(
        command, cwd=ROOT, env={"SHORT": short}, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert written == str(ROOT / folder / "results.json")
