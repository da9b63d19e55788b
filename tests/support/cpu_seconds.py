"""Runs a command and prints the CPU time of the command and its child processes.

python -m tests.support.cpu_seconds COMMAND
"""

import resource
import subprocess
import sys


def main(command: list[str]) -> int:
    """Run the command and return its exit code."""
    code = subprocess.run(command, check=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stdout.write(f"CPU: {used.ru_utime + used.ru_stime:,.0f} s\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
