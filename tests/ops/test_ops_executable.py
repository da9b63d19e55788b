"""`mailroom`, the executable that `make setup` installs: it works from any folder."""

import os
import subprocess
import sys
from pathlib import Path


def test_a_link_to_the_executable_runs_in_a_folder_with_spaces_and_another_package_of_its_name(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "other work"
    (folder / "mailroom_ops").mkdir(parents=True)
    (folder / "mailroom_ops" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    link = folder / "mailroom"
    link.symlink_to(Path(sys.executable).with_name("mailroom"))
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(link), "--version"], cwd=folder, env=own, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()[0]) == (0, "mailroom"), done.stderr
