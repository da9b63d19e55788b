"""Runs work in a process of its own, which the system ends if it takes too much time or memory."""

import faulthandler
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

MAX_CPU_SECONDS = 0.8
MAX_MEGABYTES = 18
"""Memory that the work may allocate, in units of 1,048,576 bytes. It is not limited on systems other than
Linux."""
_MAX_SECONDS = 30
"""Seconds after which a process ends that waits, such as for a lock that another thread had at the fork."""
_forking = threading.Lock()
"""Lock without which the process of another thread would inherit a pipe and keep it open."""


class ExhaustedError(Exception):
    """Error of work that took too much time or memory, or that ended its process."""


def run(work: Callable[[], bytes]) -> bytes:
    """Return the result of `work`, which runs in a forked process, so that it has the memory of this process
    but cannot change it. `work` must handle its own errors. Raises ExhaustedError, and OSError if the system
    cannot create a process."""
    with _forking:
        readable, writable = os.pipe()
        if (process := os.fork()) == 0:
            _work(work, writable)
        os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        result = pipe.read()
    _, status = os.waitpid(process, 0)
    if status != 0:
        raise ExhaustedError
    return result


def _work(work: Callable[[], bytes], writable: int) -> None:
    """Do the work in the new process, and end the process. Neither `finally` blocks nor buffers of the parent
    process may run in it a second time."""
    status = 1
    try:
        faulthandler.disable()  # the end by a signal is an expected result, and is not reported as a crash
        # The default action of both signals is to end the process, also within MiniJinja's code.
        signal.setitimer(signal.ITIMER_PROF, MAX_CPU_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, _MAX_SECONDS)
        if sys.platform == "linux":
            limit = _data_bytes() + MAX_MEGABYTES * 1024 * 1024
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        result = work()
        with os.fdopen(writable, "wb") as pipe:
            pipe.write(result)
        status = 0
    finally:
        os._exit(status)


def _data_bytes() -> int:
    """Return the size of the process's writable memory, which RLIMIT_DATA limits (man 5 proc, statm)."""
    pages = Path("/proc/self/statm").read_text().split()[5]
    return int(pages) * resource.getpagesize()
