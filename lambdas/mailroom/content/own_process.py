"""Runs work in a process of its own, which the system ends if it takes too much time or memory."""

import faulthandler
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

MAX_CPU_SECONDS = 0.8
MAX_MEGABYTES = 18
"""Memory that the work may allocate, in units of 1,048,576 bytes. It is not limited on systems other than
Linux."""
_EXHAUSTED, _FAILED = 1, 2
"""Exit statuses of work without memory, and of work with another error."""
_MAX_SECONDS = 30
"""Seconds after which a process ends that waits, such as for a lock that another thread had at the fork."""
_forking = threading.Lock()
"""Lock without which the process of another thread would inherit a pipe and keep it open."""


class ExhaustedError(Exception):
    """Error of work that took too much time or memory, or that ended its process."""


def run(work: Callable[[], bytes]) -> bytes:
    """Return the result of `work`, which runs in a forked process, so that it has the memory of this process
    but cannot change it. Raises ExhaustedError, ChildProcessError if the work raises an error, and OSError if
    the system cannot create a process."""
    with _forking:
        readable, writable = os.pipe()
        try:
            if (process := os.fork()) == 0:
                _work(work, writable)
        except OSError:
            os.close(readable)
            raise
        finally:
            os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        result = pipe.read()
    _, status = os.waitpid(process, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _FAILED:
        raise ChildProcessError("the work failed; its error is in the log")
    if status != 0:
        raise ExhaustedError
    return result


def _work(work: Callable[[], bytes], writable: int) -> None:
    """Do the work in the new process, and end the process. Neither `finally` blocks nor buffers of the parent
    process may run in it a second time."""
    status = _FAILED
    try:
        faulthandler.disable()  # the end by a signal is an expected result, and is not reported as a crash
        for ending in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(ending, signal.SIG_DFL)  # this ends the process, also within MiniJinja's code
        signal.setitimer(signal.ITIMER_PROF, MAX_CPU_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, _MAX_SECONDS)
        if sys.platform == "linux":
            limit = _data_bytes() + MAX_MEGABYTES * 1024 * 1024
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        result = work()
        with os.fdopen(writable, "wb") as pipe:
            pipe.write(result)
        status = 0
    except MemoryError:
        status = _EXHAUSTED
    except BaseException:  # noqa: BLE001 - the process must end here
        traceback.print_exc()
    finally:
        os._exit(status)


def _data_bytes() -> int:
    """Return the size of the process's writable memory, which RLIMIT_DATA limits (man 5 proc, statm)."""
    pages = Path("/proc/self/statm").read_text().split()[5]
    return int(pages) * resource.getpagesize()
