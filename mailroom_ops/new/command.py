"""`mailroom new`: writes what a team owns, and nothing else."""

import json
import shutil
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated

import typer

from mailroom_ops.screen import Refused, print_lines, refusals

NAME = "mailroom-cdk"
PROJECT = Path(__file__).with_name("project")
"""The folder as it is written, but for the pin."""
NEXT = """
Next:
  cd {folder}
  python3 -m venv .venv && . .venv/bin/activate
  pip install -r requirements.txt pytest
  mailroom up
"""


def new(
    folder: Annotated[Path, typer.Argument(help="The folder to make. It must not be there, or be empty.")],
) -> None:
    """Make a folder with stages, templates, campaigns and channels of your own, which has Mailroom as a
    dependency.

    Exit code 2: there is something in the folder.

    Example: mailroom new mail
    """
    with refusals():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Refused(f"{folder} is there, and not empty. Name a folder that is not there yet.")
        shutil.copytree(PROJECT, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "requirements.txt").write_text(f"{pin()}\n")
        written = sorted(each for each in folder.rglob("*") if each.is_file())
        print_lines("\n".join(f"{each}" for each in written))
        print_lines(NEXT.format(folder=folder))


def pin() -> str:
    """What installs this very version: its number, or the path or URL that it was installed from, which the
    installer has noted (PEP 610)."""
    installed = distribution(NAME)
    origin = json.loads(installed.read_text("direct_url.json") or "{}").get("url")
    return f"{NAME}[local] @ {origin}" if origin else f"{NAME}[local]=={installed.version}"
