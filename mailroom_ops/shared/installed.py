"""Programs that a project needs and that no package of this environment brings: the CDK's command line, and
the emulator. Each is installed below .local, from a lock that this package has."""

import hashlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mailroom_ops.shared.screen import Refused

STAMP = ".installed"
"""In a program's folder: a hash of the lock that it was installed from."""
REFUSED = (
    "Is a hash missing or another one? Then the registry gave another file than the one that was locked: do "
    "not install it."
)


def installed(folder: Path, locks: Sequence[Path], install: Callable[[Path], None]) -> Path:
    """`folder`, after `install` has filled it from `locks`, unless it did so before. Raises what `install`
    raises."""
    wanted = hashlib.sha256(b"".join(each.read_bytes() for each in locks)).hexdigest()
    stamp = folder / STAMP
    if not stamp.is_file() or stamp.read_text() != wanted:
        stamp.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        install(folder)
        stamp.write_text(wanted)
    return folder


def beside(program: str) -> str:
    """A program that this environment brings, such as uv."""
    return str(Path(sys.executable).with_name(program))


def run_locked(*command: str) -> None:
    """Run what installs. Raises Refused with its words."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if ended.returncode:
        raise Refused(f"{(ended.stderr or ended.stdout).strip()}\n{REFUSED}")
