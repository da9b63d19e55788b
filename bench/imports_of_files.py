"""`mailroom import`: 100,000 rows of a CSV file into the emulator's mailbox, by the command itself.

The stream's pump stands still, so that nothing is sent meanwhile; command and emulator share the machine.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import REPOSITORY
from local.aws import STAGE
from local.processes import most_megabytes_until_its_end
from local.stage import lifecycle
from local.stage.workspace import DOT_LOCAL, State, Workspace

ROWS = 100_000
FEW = 1_000
COMMAND = ("--channel", "mail", "--id-column", "user", "--set", "subject=Hello", "--set", "text=Hello")


def measure(announce: Callable[[str], None]) -> dict[str, Any]:
    """Rows a second, and the most memory that the command had, in MB; of few rows as well, for what it has
    at any size."""
    workspace = Workspace(DOT_LOCAL / "bench")
    lifecycle.stop(workspace)
    try:
        running = lifecycle.start(workspace, announce)
        running.processes["pump"].stop()
        few, _ = imported(running, workspace.folder, "few", FEW)
        memory, answer = imported(running, workspace.folder, "many", ROWS)
    finally:
        lifecycle.stop(workspace)
    announce(f"{ROWS:,} rows imported: {answer['lines_per_second']:.0f} a second, {memory} MB")
    return {
        "import_rows_per_second": answer["lines_per_second"],
        "import_memory_mb": {f"{FEW:,} rows": few, f"{ROWS:,} rows": memory},
    }


def imported(running: State, folder: Path, name: str, rows: int) -> tuple[float, dict[str, Any]]:
    """Import so many rows; the peak of the process's memory in MB, and its answer."""
    file = folder / f"{name}.csv"
    with file.open("w") as lines:
        lines.write("user,email,first_name,last_name\n")
        for n in range(rows):
            lines.write(f"{name}-{n},person-{n}@example.com,Person {n},Surname\n")
    command = [sys.executable, "-m", "ops", "import", str(file), *COMMAND, "--stage", STAGE, "--json"]
    environment = os.environ | running.variables() | {"NO_PROXY": "*"}
    output = folder / f"{name}.json"
    with output.open("wb") as out:
        started = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=out)
        memory = round(most_megabytes_until_its_end(started), 1)
    answer: dict[str, Any] = json.loads(output.read_text())
    if (answer["put"], answer["state"]) != (rows, "done"):
        raise RuntimeError(f"{answer['put']} of {rows} rows were put; the figures would be wrong")
    return memory, answer
