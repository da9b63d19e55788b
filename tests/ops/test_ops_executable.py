"""`mailroom`, the executable that `make setup` installs: it works from any folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_a_link_to_the_executable_ignores_another_package_mailroom_ops_in_its_folder(
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


@pytest.mark.parametrize(
    ("words", "choice"),
    [("mailroom se", "send"), ("mailroom send --from", "--from-message"), ("mailroom lane pau", "pause")],
)
def test_a_shell_completes_commands_options_and_the_commands_of_a_group(words: str, choice: str) -> None:
    asked = {"_MAILROOM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": f"{words.count(' ')}"}
    done = subprocess.run(
        [Path(sys.executable).with_name("mailroom")],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert choice in done.stdout.split(), done.stderr
