"""The lab tests the product as a whole: the demo, chaos runs and the bench, with a common harness. It is not
part of the wheel."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
SHORT = os.environ.get("SHORT") == "1"
"""Whether bench, proof, chaos and oracle run in their short form, which only shows that they work and that
their sums are consistent. The figures of a short form are not meaningful."""


def size(whole: int, short: int) -> int:
    """Return the number of items that a tool creates: `whole`, or `short` in the short form."""
    return short if SHORT else whole


def figures(name: str) -> Path:
    """Return the file into which a tool writes its figures. Files of short forms are never committed."""
    folder = REPOSITORY / ".local" / "short" if SHORT else REPOSITORY / "lab" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def measured() -> str:
    """Return what a record says of its figures: the date, the commit of the measured code with a `+` if
    lambdas/ has uncommitted changes, the version of Python, and the machine."""

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout

    commit = git("rev-parse", "--short=8", "HEAD").strip() or "unknown"
    changed = "+" if git("status", "--porcelain", "--", "lambdas") else ""
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
    return f"{datetime.now(UTC):%Y-%m-%d}, commit {commit}{changed}, {machine}"
