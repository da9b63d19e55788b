"""Installs programs that are not packages of this Python environment: the CDK's command line, and the
emulator of AWS for the local stage. Each is installed below .local, from a lock file in this package."""

import hashlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mailroom_ops.shared.refusals import Refused

STAMP = ".installed"
"""File in a program's folder with a hash of the lock files from which the program was installed."""
REFUSED = (
    "If a hash is missing or differs, the registry returned another file than the one in the lock file: do "
    "not install it."
)


def installed(folder: Path, locks: Sequence[Path], install: Callable[[Path], None]) -> Path:
    """Return `folder`. If the lock files have changed since the last installation, call `install` first.
    Raises the errors of `install`."""
    checksum = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()
    stamp = folder / STAMP
    if not stamp.is_file() or stamp.read_text() != checksum:
        stamp.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        install(folder)
        stamp.write_text(checksum)
    return folder


def beside(program: str) -> str:
    """Return the path of a program in this Python environment, such as uv."""
    return str(Path(sys.executable).with_name(program))


def run_locked(*command: str, remedy: str = REFUSED) -> None:
    """Run an installer. Raises Refused with its output and a remedy if it fails."""
    process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if process.returncode:
        raise Refused(f"{' '.join((process.stderr or process.stdout).split())} {remedy}")
