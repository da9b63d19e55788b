"""Runs pytest several times at once, each time with different tests, and prints each line of output at once.

python -m tests.support.side_by_side ARGUMENTS...

Each of ARGUMENTS has the arguments of one pytest: 'tests/pipeline' 'tests --ignore tests/pipeline'. So a test
always has the same tests before it in its process, and each test is collected only once. The first pytest has
the highest priority: its tests should be those that mostly wait.
"""

import shlex
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO

from tests.support.cpu_seconds import cpu_seconds

PYTEST = (sys.executable, "-m", "pytest")
LOWER_PRIORITY = ("nice", "-n", "5")
"""Prefix of all commands but the first. At the lowest priority, a busy machine would give them nearly no
time, and what they wait for would come too late."""


def main(arguments: Sequence[str], program: Sequence[str] = PYTEST) -> int:
    """Run the program once with each of the arguments; return 0 if all of them succeeded, else 1."""
    words = [shlex.split(argument) for argument in arguments]
    names = [first for first, *_ in words]
    color = ["--color=yes"] if program == PYTEST and sys.stdout.isatty() else []
    commands = [[*program, *options, *color] for options in words]
    commands[1:] = [[*LOWER_PRIORITY, *command] for command in commands[1:]]
    runs = [_start(command) for command in commands]
    readers = [
        threading.Thread(target=_print_lines, args=(name, run.stdout))
        for name, run in zip(names, runs, strict=True)
    ]
    for reader in readers:
        reader.start()
    try:
        for reader in readers:
            reader.join()
    finally:  # Ctrl-C reaches every pytest, which then stops what its tests have started
        codes = [run.wait() for run in runs]
    for name, code in zip(names, codes, strict=True):
        if code:
            sys.stdout.write(f"{name}: failed with exit code {code}\n")
    sys.stdout.write(f"CPU: {cpu_seconds():,.0f} s\n")
    return int(any(codes))


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace")


def _print_lines(name: str, output: IO[str]) -> None:
    with output:
        for line in output:
            sys.stdout.write(f"{name}: {line}")
            sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
