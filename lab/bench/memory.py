"""Memory that a process uses."""

import subprocess
from pathlib import Path

_EVERY_SECONDS = 0.05


def most_megabytes(pid: int | str = "self") -> float:
    """Return the peak memory of a process in MB of 1,048,576 bytes, or 0 if the process has ended or the
    system is not Linux.

    `resource.getrusage` is not suitable: its value is preserved by `exec`, so a new process would begin with
    its parent's value.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    peak = text.partition("VmHWM:")[2].split()
    return int(peak[0]) / 1024 if peak else 0


def most_megabytes_until_its_end(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process to end, and return its peak memory in MB."""
    maximum = 0.0
    while True:
        maximum = max(maximum, most_megabytes(process.pid))
        try:
            process.wait(_EVERY_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return maximum
