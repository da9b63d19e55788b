"""The commands `new` and `update`: make a project folder, and update it to another version."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mailroom_ops.setup import project_folder
from mailroom_ops.shared.installed import beside, run_locked
from mailroom_ops.shared.screen import Refused, print_lines, refusals
from mailroom_stacks.paths import PROJECT

NOT_INSTALLABLE = (
    "Nothing was changed. Correct requirements.txt, which must include and match the lock of the wheel."
)


def new(
    folder: Annotated[Path, typer.Argument(help="The folder to make. It must be empty or not exist yet.")],
    *,
    wheel: Annotated[
        Path | None, typer.Option(help="Mailroom's wheel; default: the wheel in vendor/ of this folder.")
    ] = None,
) -> None:
    """Make a folder with stages, templates, campaigns and channels of your own, and with Mailroom's wheel and
    the lock of its packages in vendor/.

    Exit code 2: the folder is not empty, or the wheel is missing.

    Example: mailroom new mail
    """
    with refusals(ValueError):
        wheel = wheel or max(PROJECT.glob("vendor/mailroom_cdk-*.whl"), default=None)
        if wheel is None:
            raise Refused(f"{PROJECT / 'vendor'} does not have a wheel of Mailroom. Name one: --wheel FILE")
        print_lines(project_folder.make(folder, wheel))


def update(
    wheel: Annotated[Path, typer.Argument(help="A newer wheel, or an older one to go back.")],
) -> None:
    """Update this folder to another version of Mailroom: vendor/, requirements.txt, and the other files of
    `mailroom new` that you have not changed.

    If the versions differ in a file that you have changed, or if the other version lacks a file, the command
    prints the difference, and you apply it by hand. Files that you removed stay removed.

    Exit code 1: the folder was updated, and a difference is left to you. 2: the folder stays unchanged,
    because the file is not a wheel of Mailroom, or because requirements.txt could not be installed with it.

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
