"""The short form of a tool leaves the recorded figures alone."""

import subprocess
import sys

import pytest

from tests.support import ROOT


@pytest.mark.process
@pytest.mark.parametrize(("short", "folder"), [("1", ".local/short"), ("", "lab/bench")])
def test_a_short_run_of_the_bench_has_a_folder_for_its_figures_apart_from_the_committed_figures(
    short: str, folder: str
) -> None:
    command = [sys.executable, "-c", "from lab import figures; print(figures('results.json'))"]
    written = subprocess.run(
        command, cwd=ROOT, env={"SHORT": short}, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert written == str(ROOT / folder / "results.json")
