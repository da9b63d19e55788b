"""Writes a project folder from a wheel, and pins the folder to the wheel. This module imports only Python's
standard library, because it runs before any package is installed."""

import hashlib
import re
from pathlib import Path
from zipfile import BadZipFile, ZipFile

TEMPLATE = "mailroom_ops/setup/project/"
"""Path of the folder's files in the wheel."""
LOCK = "mailroom_ops/setup/requirements.txt"
"""Path in the wheel of the lock file of all packages that it needs. This path must not change between
releases."""
PINNED = re.compile(r"^(\./vendor/mailroom_cdk-|mailroom-cdk\[).*", re.MULTILINE)
"""Line of requirements.txt that names Mailroom's version."""
INSTALL = "pip install --require-hashes -r requirements.txt"
NEXT = f"""
Next:
  cd {{folder}}
  python3 -m venv .venv && . .venv/bin/activate
  {INSTALL}
  mailroom up"""


def make(folder: Path, wheel: Path) -> str:
    """Write a folder from a wheel, and pin the folder to the wheel. Return the names of its files and the
    next steps. Raises ValueError, before a file is written, if the folder has files or the file is not a
    wheel of Mailroom."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists, and is not empty. Name a folder that does not exist yet.")
    with opened(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(TEMPLATE):
                file = folder / name.removeprefix(TEMPLATE)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.read(name))
    pin(folder, wheel)
    files = sorted(f"{file}" for file in folder.rglob("*") if file.is_file())
    return "\n".join([*files, NEXT.format(folder=folder)])


def pin(folder: Path, wheel: Path) -> None:
    """Put a wheel and its lock file into a folder's vendor/, in place of earlier ones, and name the wheel and
    its hash in requirements.txt. Raises ValueError, before a file is changed, if the file is not a wheel of
    Mailroom, or if requirements.txt does not name Mailroom in exactly one line."""
    requirements, vendor = folder / "requirements.txt", folder / "vendor"
    with opened(wheel) as archive:
        content, lock = wheel.read_bytes(), archive.read(LOCK)
    line = f"./vendor/{wheel.name}[local,test] --hash=sha256:{hashlib.sha256(content).hexdigest()}"
    text, count = PINNED.subn(line, requirements.read_text() if requirements.is_file() else "")
    if count != 1:
        raise ValueError(
            f"{requirements} must name Mailroom in one line, which begins with ./vendor/mailroom_cdk-"
        )
    vendor.mkdir(exist_ok=True)
    for earlier in vendor.glob("mailroom_cdk-*.whl"):
        earlier.unlink()
    (vendor / wheel.name).write_bytes(content)
    (vendor / "requirements.txt").write_bytes(lock)
    requirements.write_text(text)


def opened(wheel: Path) -> ZipFile:
    """Open a wheel of Mailroom. Raises ValueError if the file is not one."""
    try:
        archive = ZipFile(wheel)
        archive.getinfo(LOCK)
    except (OSError, BadZipFile, KeyError) as error:
        raise ValueError(f"{wheel} is not a wheel of Mailroom: {error}.") from None
    return archive
