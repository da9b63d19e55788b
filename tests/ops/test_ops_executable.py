"""`mailroom`, the executable that `make setup` writes: it works from any folder."""

import os
import shutil
import subprocess
from pathlib import Path

from local.stage.workspace import REPOSITORY


def installed(root: Path) -> Path:
    """The executable in a repository at `root`, which has this one's interpreter and packages."""
    programs = root / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("ops", "lambdas", "stacks", "local"):
        (root / name).symlink_to(REPOSITORY / name)
    python = programs / "python"
    python.write_text(f'#!/bin/sh\nexec "{REPOSITORY}/.venv/bin/python" "$@"\n')
    python.chmod(0o755)
    executable = programs / "mailroom"
    shutil.copy(REPOSITORY / "ops" / "mailroom.sh", executable)
    executable.chmod(0o755)
    return executable


def answer(executable: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(executable), "--help"], cwd=cwd, env=own, capture_output=True, text=True, timeout=60, check=False
    )


def test_it_runs_from_a_folder_with_spaces_and_another_ops_in_it(tmp_path: Path) -> None:
    executable = installed(tmp_path / "my mail room")
    elsewhere = tmp_path / "other work"
    (elsewhere / "ops").mkdir(parents=True)
    (elsewhere / "ops" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    found = answer(executable, elsewhere)
    assert found.returncode == 0, found.stderr
    assert "Usage: mailroom " in found.stdout
    assert "campaign" in found.stdout


def test_it_runs_by_way_of_a_link(tmp_path: Path) -> None:
    link = tmp_path / "mailroom"
    link.symlink_to(installed(tmp_path / "room"))
    found = answer(link, tmp_path)
    assert found.returncode == 0, found.stderr
