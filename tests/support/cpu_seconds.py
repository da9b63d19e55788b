"""Runs a command and prints the CPU time of the command and its child processes.

python -m tests.support.cpu_seconds COMMAND
"""

import resource
import subprocess
import sys


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its child processes that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def main(command: list[str]) -> int:
    """Run the command and return its exit code."""
    code = subprocess.run(command, check=False).returncode
    sys.stdout.write(f"CPU: {cpu_seconds():,.0f} s\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
