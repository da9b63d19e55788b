"""Background processes that outlive the command that started them."""

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
TERM_SECONDS = 20.0
"""Maximum time from SIGTERM to the end of a process, in which the simulators write their data to a file."""
POLL_SECONDS = 0.02


class StartError(RuntimeError):
    """A background process did not start. The message contains the end of its log and a remedy."""


@dataclass(frozen=True)
class Process:
    """A started process. `marker` is a part of its command line, which is compared before a signal is sent,
    because the system may have given the pid to another program since."""

    pid: int
    marker: str

    def alive(self) -> bool:
        try:
            return os.waitpid(self.pid, os.WNOHANG) == (0, 0)
        except ChildProcessError:  # an earlier command started the process, or it has ended
            return self.marker in _command_line(self.pid)

    def stop(self) -> bool:
        """End the process and all its child processes. Return whether the process was running."""
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
    """Start a command in a new session, so that the id of its process group is its pid. Its output
    goes to `log`, which only this user may read: the console's log contains the URL with its access token."""
    log.parent.mkdir(parents=True, exist_ok=True)
    # An existing log is removed, because `open` would keep its file mode, which may let other users read it.
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
    # `Process` waits for the child by its pid, possibly in a later command. Popen must not warn that the
    # child still runs.
    child.returncode = 0
    return Process(child.pid, marker)


def wait_until(condition: Callable[[], bool], seconds: float, poll: float = POLL_SECONDS) -> bool:
    """Return whether `condition` became true within `seconds`. It is evaluated every `poll` seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll)
    return True


def free_ports(count: int, preferred: Sequence[int] = ()) -> list[int]:
    """Return free and distinct ports on the loopback address. Ports of `preferred` are used if they are
    free."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener, port in zip(sockets, [*preferred, *[0] * count], strict=False):
            # Servers set this option too. Without it, a port would seem occupied while connections of the
            # last run are closing.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((LOOPBACK, port))
            except OSError:
                listener.bind((LOOPBACK, 0))
        return [int(listener.getsockname()[1]) for listener in sockets]


def kept_ports(path: Path, count: int) -> list[int]:
    """Return free ports, and store them in the file `path`. The ports of the last run, read from the file,
    are used again if they are free."""
    earlier: list[int] = []
    with suppress(OSError, ValueError):
        earlier = msgspec.json.decode(path.read_bytes(), type=list[Annotated[int, Meta(ge=1024, le=65_535)]])
    ports = free_ports(count, earlier)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(ports))
    return ports


def _command_line(pid: int) -> str:
    """Return the command line of the process `pid`, or an empty string if the process has ended."""
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
