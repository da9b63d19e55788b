"""How much memory a process takes."""

import subprocess
from pathlib import Path

_EVERY_SECONDS = 0.05


def most_megabytes(pid: int | str = "self") -> float:
    """The most memory of a process so far, in MB of 1,048,576 bytes; 0 if it is over or the system is not
    Linux.

    Not by `resource.getrusage`: its figure outlives `exec`, so that a new process starts at its parent's.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    peak = text.partition("VmHWM:")[2].split()
    return int(peak[0]) / 1024 if peak else 0


def most_megabytes_until_its_end(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process to end; its `most_megabytes`."""
    maximum = 0.0
    while True:
        maximum = max(maximum, most_megabytes(process.pid))
        try:
            process.wait(_EVERY_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return maximum
