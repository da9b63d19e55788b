"""The command `update`: updates a project folder to another version."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mailroom_ops.setup import project_folder
from mailroom_ops.shared.installed import beside, run_locked
from mailroom_ops.shared.screen import print_lines, refusals
from mailroom_stacks.paths import PROJECT

NOT_INSTALLABLE = (
    "Nothing was changed. Correct requirements.txt, which must include and match the lock of the wheel."
)


def update(
    wheel: Annotated[Path, typer.Argument(help="A newer wheel, or an older one to go back.")],
) -> None:
    """Update this folder to another version of Mailroom.

    The command updates vendor/, requirements.txt, and the other files of `make new` that you have not
    changed. If the versions differ in a file that you have changed, or if the other version lacks a file, the
    command prints the difference, and you apply it by hand. Files that you removed stay removed.

    Exit code 1: the folder was updated, and a difference is left to you. 2: the folder stays unchanged,
    because the file is not a wheel of Mailroom, because the wheel that requirements.txt names is missing, or
    because requirements.txt could not be installed with the file.

    Example: mailroom update mailroom_cdk-0.4.0-py3-none-any.whl
    """
    with refusals(ValueError):
        names, differences = project_folder.update(PROJECT, wheel, check_installable)
    by_hand = ["Change by hand:", *differences] if differences else []
    print_lines("\n".join([*(f"Changed: {name}" for name in names), *by_hand]))
    print_lines(f"Next:\n  {project_folder.INSTALL}\n  mailroom diff --stage dev")
    raise typer.Exit(1 if differences else 0)


def check_installable(folder: Path) -> None:
    """Resolve a folder's requirements for this Python and an empty environment, without installing packages.
    Raises Refused with uv's words if the requirements cannot be installed."""
    place = ("--directory", str(folder), "--python", sys.executable, "--target", ".dry")
    command = (beside("uv"), *project_folder.INSTALL.split(), "--dry-run", "--quiet", *place)
    run_locked(*command, remedy=NOT_INSTALLABLE)
