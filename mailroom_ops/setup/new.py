"""The commands `new` and `update`: make a project folder, and pin it to another version."""

import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit
from urllib.request import url2pathname

import typer

from mailroom_ops.setup.project_folder import INSTALL, make, pin
from mailroom_ops.shared.screen import Refused, print_lines, refusals
from mailroom_stacks.paths import PROJECT


def new(
    folder: Annotated[Path, typer.Argument(help="The folder to make. It must be empty or not exist yet.")],
    *,
    wheel: Annotated[
        Path | None, typer.Option(help="Mailroom's wheel; default: the file of the installed version.")
    ] = None,
) -> None:
    """Make a folder with stages, templates, campaigns and channels of your own, and with Mailroom's wheel and
    the lock of its packages in vendor/.

    Exit code 2: the folder is not empty, or the wheel is not on this machine.

    Example: mailroom new mail
    """
    with refusals():
        try:
            print_lines(make(folder, wheel or _installed_wheel()))
        except ValueError as error:
            raise Refused(f"{error}") from None


def update(
    wheel: Annotated[Path, typer.Argument(help="A newer wheel, or an older one to go back.")],
) -> None:
    """Pin this folder to another version of Mailroom, in vendor/ and requirements.txt.

    Exit code 2: the file is not a wheel of Mailroom, or requirements.txt does not name Mailroom in
    exactly one line.

    Example: mailroom update mailroom_cdk-0.4.0-py3-none-any.whl
    """
    with refusals():
        try:
            pin(PROJECT, wheel)
        except ValueError as error:
            raise Refused(f"{error}") from None
        print_lines(f"Next:\n  {INSTALL}\n  mailroom diff --stage dev")


def _installed_wheel() -> Path:
    """Return the file that this version was installed from, which the installer has recorded (PEP 610).
    Raises Refused if the file no longer exists."""
    installed = distribution("mailroom-cdk")
    origin = json.loads(installed.read_text("direct_url.json") or "{}").get("url", "")
    wheel = Path(url2pathname(urlsplit(origin).path))
    if wheel.suffix != ".whl" or not wheel.is_file():
        raise Refused(
            f"The wheel that Mailroom {installed.version} was installed from is not on this machine. Name "
            f"the file: --wheel mailroom_cdk-{installed.version}-py3-none-any.whl"
        )
    return wheel
