"""Background processes that outlive the command which started them."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

LOOPBACK = "127.0.0.1"
TERM_SECONDS = 5.0
POLL_SECONDS = 0.02
EXEC_SECONDS = 1.0


class StartError(RuntimeError):
    """A background process did not come up; the message holds its log's tail and what to do."""


@dataclass(frozen=True)
class Process:
    """A started process. `marker` is a part of its command line: a pid that the system has given to another
    program since is never signalled."""

    pid: int
    marker: str

    def alive(self) -> bool:
        with suppress(ChildProcessError):  # raised for a process that an earlier command started
            os.waitpid(self.pid, os.WNOHANG)
        return self.marker in _command_line(self.pid)

    def stop(self) -> bool:
        """End the process and all it started; True if there was anything to end."""
        if not self.alive():
            return False
        for step in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self.pid, step)
            if wait_until(lambda: not self.alive(), TERM_SECONDS):
                break
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # ends functions that outlived the emulator
        return True


def start(command: Sequence[str], marker: str, log: Path, environment: Mapping[str, str]) -> Process:
    """Start a command in a session of its own (its process group is its pid), logging to `log`,
    which only this user may read: the console's has the URL that lets one in."""
    log.parent.mkdir(parents=True, exist_ok=True)
    # An existing log is removed, because it would keep its mode, by which others might read it.
    log.unlink(missing_ok=True)
    with open(log, "wb", opener=partial(os.open, mode=0o600)) as output:
        child = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    # The child is waited for by its pid, maybe by another command, so Popen must not warn that it still runs.
    child.returncode = 0
    process = Process(child.pid, marker)
    # For a moment after exec, the command line of a process is empty, so that `alive` would be false.
    wait_until(process.alive, EXEC_SECONDS)
    return process


def wait_until(condition: Callable[[], bool], seconds: float, poll: float = POLL_SECONDS) -> bool:
    """Whether the condition came true within so many seconds; it is asked for every `poll`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll)
    return True


def free_ports(count: int, preferred: Sequence[int] = ()) -> list[int]:
    """Free ports on the loopback address, all different: of `preferred` those that are free."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener, port in zip(sockets, [*preferred, *[0] * count], strict=False):
            # Servers set this option too: without it, lingering connections of the last run would make a port
            # look used.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((LOOPBACK, port))
            except OSError:
                listener.bind((LOOPBACK, 0))
        return [int(listener.getsockname()[1]) for listener in sockets]


def kept_ports(path: Path, count: int) -> list[int]:
    """Free ports: the last run's ports, which are in the file, if they are still free."""
    earlier: list[int] = []
    with suppress(OSError, ValueError):
        earlier = msgspec.json.decode(path.read_bytes(), type=list[Annotated[int, Meta(ge=1024, le=65_535)]])
    ports = free_ports(count, earlier)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(ports))
    return ports


def _command_line(pid: int) -> str:
    """Return the command line of this pid; empty for a dead or defunct process."""
    proc = Path(f"/proc/{pid}/cmdline")
    if Path("/proc/self/cmdline").exists():
        try:
            return proc.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    answer = subprocess.run(
        ["ps", "-o", "stat=,command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return "" if answer.stdout.lstrip().startswith("Z") else answer.stdout
