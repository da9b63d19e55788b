"""Runs a command and says what CPU time it and its processes took: python -m tests.support.cpu_units COMMAND

Where CI is set in the environment, also in units, so that machines can be compared. A unit is the CPU time of
the statements below, the least of three runs.
"""

import os
import resource
import subprocess
import sys
import time

STATEMENTS = "x = 0\nfor i in range(10_000_000): x += i * i % 7"


def unit() -> float:
    """The seconds of a unit on this machine."""
    return min(_once() for _ in range(3))


def _once() -> float:
    began = time.process_time()
    exec(STATEMENTS, {})
    return time.process_time() - began


def main(command: list[str]) -> int:
    """The command's exit code."""
    code = subprocess.run(command, check=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime
    units = f", {seconds / unit():,.0f} units" if os.environ.get("CI") else ""
    sys.stdout.write(f"CPU: {seconds:,.0f} s{units}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
