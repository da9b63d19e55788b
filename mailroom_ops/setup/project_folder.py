"""Writes a project folder from a wheel, and updates the folder to another wheel. This module imports only
Python's standard library, because it runs before any package is installed."""

import re
from collections.abc import Callable
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

TEMPLATE = "mailroom_ops/setup/project/"
"""Path of the folder's files in the wheel."""
LOCK = "mailroom_ops/setup/requirements.txt"
"""Path in the wheel of the lock file of all packages that it needs. This path must not change between
releases."""
REQUIREMENTS = "requirements.txt"
PINNED = re.compile(rb"^\./(vendor/mailroom_cdk-[^[\s]*).*", re.MULTILINE)
"""Line of requirements.txt that names Mailroom's wheel. The group is the wheel's path."""
UNPINNED = b"./vendor/mailroom_cdk-"
"""The same line in the template."""
INSTALL = "pip install --require-hashes -r requirements.txt"
NEXT = f"""
Next:
  cd {{folder}}
  python3 -m venv .venv && . .venv/bin/activate
  {INSTALL}
  mailroom up"""
Files = dict[str, bytes]
"""Contents of files, by their paths in the folder."""


def make(folder: Path, wheel: Path) -> str:
    """Write a folder from a wheel, and pin the folder to the wheel. Return the names of its files and the
    next steps. Raises ValueError, before a file is written, if the folder has files or the file is not a
    wheel of Mailroom."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists, and is not empty. Name a folder that does not exist yet.")
    template, vendor, line = _read(wheel)
    files = template | vendor | {REQUIREMENTS: PINNED.sub(line, template[REQUIREMENTS])}
    _write(folder, files)
    return "\n".join([*sorted(f"{folder / name}" for name in files), NEXT.format(folder=folder)])


def update(folder: Path, wheel: Path, check: Callable[[Path], None]) -> tuple[list[str], list[str]]:
    """Pin a folder to a wheel, and write the files that `_compare` returns. Return the names of these files,
    and the differences that are left to the team.

    `check` gets a copy of the folder with the wheel and its requirements. If it raises an error, the folder
    stays unchanged. Raises ValueError, before a file is changed, if the file is not a wheel of Mailroom, if
    it differs from the pinned wheel of the same version, if requirements.txt does not name Mailroom in
    exactly one line, or if the wheel in that line is missing."""
    path = folder / REQUIREMENTS
    requirements = path.read_bytes() if path.is_file() else b""
    pins = PINNED.findall(requirements)
    if len(pins) != 1:
        raise ValueError(f"{path} must name Mailroom in one line, which begins with {UNPINNED.decode()}")
    earlier = folder / pins[0].decode()
    if not earlier.is_file():
        raise ValueError(f"{earlier} is missing, and {path} names it. Restore the file from git.")
    (base, _, _), (template, vendor, line) = _read(earlier), _read(wheel)
    if earlier.name == wheel.name and earlier.read_bytes() != wheel.read_bytes():
        raise ValueError(f"{wheel} has the pinned version: pip would not install it. Build another commit.")
    contents = {name: (folder / name).read_bytes() for name in template | base if (folder / name).is_file()}
    contents[REQUIREMENTS] = PINNED.sub(UNPINNED, requirements)
    files, differences = _compare(contents, template, base)
    # The requirements are written last: until then, a repeated update compares with the same earlier wheel.
    files[REQUIREMENTS] = PINNED.sub(line, files.pop(REQUIREMENTS, contents[REQUIREMENTS]))
    with TemporaryDirectory() as copy:
        _write(Path(copy), vendor | files)
        for file in (*folder.iterdir(), *folder.glob("vendor/*")):
            if not Path(copy, file.relative_to(folder)).exists():
                Path(copy, file.relative_to(folder)).symlink_to(file.resolve())
        check(Path(copy))
    _write(folder, vendor | files)
    for file in {*folder.glob("vendor/mailroom_cdk-*.whl")} - {folder / "vendor" / wheel.name}:
        file.unlink()
    return [*files], differences


def _compare(contents: Files, template: Files, base: Files) -> tuple[Files, list[str]]:
    """Compare the team's files with the template, and with `base`, the template from which they were made.
    Return the content of files to replace or add: of those that the team has not changed, and of those that
    are new in the template. Return the other differences as lines of unified diffs: those of files that the
    team has changed, and of files that only the base has. Leave out files that the team has removed."""
    files, differences = Files(), list[str]()
    for name in sorted(template | base):
        content, original, replacement = contents.get(name), base.get(name), template.get(name)
        if replacement in (original, content):
            continue
        if content == original and replacement is not None:
            files[name] = replacement
        elif content is not None:
            texts = (original or content, replacement or b"")
            lines = [text.decode(errors="replace").splitlines() for text in texts]
            place = "/dev/null" if replacement is None else name
            differences += unified_diff(lines[0], lines[1], name, place, lineterm="")
    return files, differences


def _read(wheel: Path) -> tuple[Files, Files, bytes]:
    """Return the template in a wheel, the files of vendor/, and the wheel's line of requirements.txt. Raises
    ValueError if the file is not a wheel of Mailroom."""
    try:
        with ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith(TEMPLATE)]
            template = {name.removeprefix(TEMPLATE): archive.read(name) for name in names}
            content, lock = wheel.read_bytes(), archive.read(LOCK)
    except (OSError, BadZipFile, KeyError) as error:
        raise ValueError(f"{wheel} is not a wheel of Mailroom: {error}.") from None
    line = f"./vendor/{wheel.name}[local,test] --hash=sha256:{sha256(content).hexdigest()}"
    return template, {f"vendor/{wheel.name}": content, "vendor/requirements.txt": lock}, line.encode()


def _write(folder: Path, files: Files) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
