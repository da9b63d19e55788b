"""An import that is cut off, and goes on: each row comes into the mailbox once. Real processes, really
killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from lab.bench.memory import most_megabytes_until_its_end
from tests.support import ROOT
from tests.support.ops.import_child import WORKERS

FEW, MANY = 2_000, 12_000
EVERY_BAD = 100
"""Each line of a number that this divides is none that can be put."""
SPARE_MB = 6.0
"""Memory in MB that many rows may take more than few. The import's memory does not grow with them, but
allocators are not exact."""


def people_files(folder: Path, rows: int) -> tuple[Path, Path]:
    """Write a file of so many people, some rows of which are invalid, and an empty mailbox."""
    file, counts = folder / f"people-{rows}.csv", folder / f"counts-{rows}"
    with file.open("w") as lines:
        lines.write("id,email,subject,text,name\n")
        for row in range(rows):
            email = "nowhere" if row % EVERY_BAD == 0 else f"person-{row}@example.com"
            lines.write(f'p-{row},{email},Hello,Hi,"Person {row}"\n')
    counts.write_bytes(bytes(rows))
    return file, counts


def imported(file: Path, counts: Path, *death: str) -> tuple[int, dict[str, Any], float]:
    """Result of a process: its exit code, its answer, and its highest memory in MB."""
    command = [sys.executable, "-m", "tests.support.ops.import_child", str(file), str(counts), *death]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'lambdas'}"}
    output = file.with_suffix(".answer")
    with output.open("wb") as out:
        child = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out)
        most = most_megabytes_until_its_end(child)
    said = output.read_text()
    return child.returncode, json.loads(said) if said else {}, most


def each_once(rows: int) -> bytes:
    """How often each row is put in the end."""
    return bytes(int(row % EVERY_BAD != 0) for row in range(rows))


def test_an_import_that_is_killed_and_repeated_puts_each_valid_row_once_in_bounded_memory(
    tmp_path: Path,
) -> None:
    few_file, few_counts = people_files(tmp_path, FEW)
    _, _, few = imported(few_file, few_counts)
    file, counts = people_files(tmp_path, MANY)
    killed, _, most = imported(file, counts, "SIGKILL", f"{MANY // 2}")
    assert killed == -signal.SIGKILL
    code, answer, memory = imported(file, counts)
    assert code == 0
    assert MANY // 2 <= answer["existed"] < MANY // 2 + 4 * WORKERS + WORKERS
    assert counts.read_bytes() == each_once(MANY)
    bad = MANY // EVERY_BAD
    assert (answer["put"] + answer["existed"], answer["refused"]) == (MANY - bad, bad)
    assert [fault["line"] for fault in answer["faults"]] == [row + 2 for row in range(0, MANY, EVERY_BAD)]
    assert max(most, memory) - few < SPARE_MB


def test_an_import_that_ctrl_c_interrupts_finishes_its_open_calls_and_can_be_continued(
    tmp_path: Path,
) -> None:
    file, counts = people_files(tmp_path, FEW)
    code, answer, _ = imported(file, counts, "SIGINT", "700")
    assert (code, answer["state"], answer["failed"]) == (0, "interrupted", 0)
    assert 700 <= sum(counts.read_bytes()) <= 700 + 6 * WORKERS
    _, answer, _ = imported(file, counts)
    assert answer["state"] == "done"
    assert counts.read_bytes() == each_once(FEW)
