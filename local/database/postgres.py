"""A PostgreSQL of one's own, on the loopback address: its binaries come with a package, no server is needed.

    python -m local.database.postgres --folder F --port P      (its password stands in PGPASSWORD)

runs until it is told to end, and leaves nothing behind, also where it is killed.
"""

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import psycopg

from local.database import postgres_binaries
from local.stage.emulator import LOOPBACK, free_ports
from local.stage.processes import StartError, wait_until

USER = DATABASE = "mailroom"
LISTENING = "listening on "
"""What it logs when it answers."""
START_SECONDS = 30.0
STOP_SECONDS = 20.0
ASKED_FOR = "PGPASSWORD"
"""The environment's variable that holds the password."""

# The shell outlives whoever started it, for as long as the server and its data need to go: its input ends
# when they do, by whatever death.
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

# What is lost in a crash is of no use anyway: the data go with the server.
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
class Postgres:
    """A running server, with one database."""

    port: int
    password: str = field(repr=False)
    folder: Path
    guard: int
    """The process that ends the server when its own input ends."""

    @property
    def secret(self) -> dict[str, str | int]:
        """How to reach it, in the form that RDS gives a secret."""
        return {
            "engine": "postgres",
            "host": LOOPBACK,
            "port": self.port,
            "username": USER,
            "password": self.password,
            "dbname": DATABASE,
        }

    def connect(self) -> psycopg.Connection:
        """A connection of one's own."""
        return psycopg.connect(
            host=LOOPBACK,
            port=self.port,
            user=USER,
            password=self.password,
            dbname=DATABASE,
            sslmode="disable",
        )


@contextmanager
def serving(folder: Path, port: int | None = None, password: str | None = None) -> Iterator[Postgres]:
    """A server with its data in the folder, which is its alone and is gone afterwards. Raises StartError."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    port, password = port or free_ports(1)[0], password or secrets.token_urlsafe(24)
    home = postgres_binaries.home(folder)
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


def _make(home: postgres_binaries.Home, password: str) -> None:
    """Its data folder, with one superuser and one database."""
    known = home.folder / "password"
    known.write_text(password)
    known.chmod(0o600)
    home.own(known)
    locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    access = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={known}"]
    home.run("initdb", "--no-sync", "--no-instructions", f"--pgdata={home.folder / 'data'}", *locale, *access)
    known.unlink()
    single = ["--single", "-D", str(home.folder / "data"), "postgres"]
    home.run("postgres", *single, told=f"CREATE DATABASE {DATABASE}\n")


def _command(home: postgres_binaries.Home, port: int) -> list[str]:
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
        log.seek(0)  # the guard has removed the file by now
        said = log.read().decode(errors="replace")
        raise StartError(f"The embedded PostgreSQL did not start on port {server.port}; its log:\n{said}")


def _end(guard: subprocess.Popen[bytes]) -> None:
    assert guard.stdin is not None
    guard.stdin.close()
    try:
        guard.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(guard.pid, signal.SIGKILL)
        guard.wait()


def main() -> None:
    """Serve until told to end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, required=True, help="for its data; emptied first, gone at the end"
    )
    parser.add_argument("--port", type=int, required=True)
    asked = parser.parse_args()
    password = os.environ.get(ASKED_FOR)
    if not password:
        raise SystemExit(f"{ASKED_FOR} is not set; put the password there that the server shall ask for.")
    ended = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: ended.set())
    with serving(asked.folder, asked.port, password) as server:
        print(f"{LISTENING}{LOOPBACK}:{server.port}", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
