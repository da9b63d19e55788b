"""`mailroom`, the executable that `make setup` installs: it works from any folder."""

import os
import subprocess
import sys
from pathlib import Path

MAILROOM = Path(sys.executable).with_name("mailroom")


def answer(executable: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(executable), "--help"], cwd=cwd, env=own, capture_output=True, text=True, timeout=60, check=False
    )


def test_it_runs_from_a_folder_with_spaces_and_another_package_of_its_name_in_it(tmp_path: Path) -> None:
    elsewhere = tmp_path / "other work"
    (elsewhere / "mailroom_ops").mkdir(parents=True)
    (elsewhere / "mailroom_ops" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    found = answer(MAILROOM, elsewhere)
    assert found.returncode == 0, found.stderr
    assert "Usage: mailroom " in found.stdout
    assert "campaign" in found.stdout


def test_it_runs_by_way_of_a_link(tmp_path: Path) -> None:
    link = tmp_path / "mailroom"
    link.symlink_to(MAILROOM)
    found = answer(link, tmp_path)
    assert found.returncode == 0, found.stderr
