"""Virtual environments of programs of the local stage, whose packages must not mix with those of Mailroom."""

import sys
from pathlib import Path

import mailroom_local
from mailroom_ops.shared.installed import beside, installed, run_locked

PACKAGE = Path(mailroom_local.__file__).resolve().parent


def install_locked(folder: Path, lock: Path) -> None:
    """Create the virtual environment `folder` with the packages of a lock file, unless it has them. Raises
    Refused."""

    def install(folder: Path) -> None:
        uv = beside("uv")
        run_locked(uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder))
        only_locked = ("--quiet", "--require-hashes", "--only-binary", ":all:")
        run_locked(uv, "pip", "sync", *only_locked, "--python", str(folder / "bin" / "python"), str(lock))

    installed(folder, [lock], install)
