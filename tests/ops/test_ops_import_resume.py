"""An import that is cut off, and goes on: each row comes into the mailbox once. Real processes, really
killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.memory import most_megabytes_until_its_end
from local.stage.workspace import REPOSITORY
from ops.imports.source import Source
from tests.support.ops.import_child import CTRL_C, DEATHS, WORKERS

FEW, MANY = 3_000, 100_000
EVERY_BAD = 100
"""Each line of a number that this divides is none that can be put."""
SPARE_MB = 6.0
"""What many rows may take more than few: nothing that grows with them, but allocators are no bookkeepers."""


def people(folder: Path, rows: int) -> tuple[Path, Path]:
    """A file of so many people, some of them wrong, and a mailbox in which nobody is."""
    file, counts = folder / f"people-{rows}.csv", folder / f"counts-{rows}"
    with file.open("w") as lines:
        lines.write("id,email,name\n")
        for row in range(rows):
            email = "nowhere" if row % EVERY_BAD == 0 else f"person-{row}@example.com"
            lines.write(f'p-{row},{email},"Person {row}"\n')
    counts.write_bytes(bytes(rows))
    return file, counts


def imported(file: Path, counts: Path, *death: str) -> tuple[int, dict[str, Any], float]:
    """One process: how it ended, its answer, and the most memory that it had, in MB."""
    command = [sys.executable, "-m", "tests.support.ops.import_child", str(file), str(counts), *death]
    environment = os.environ | {"PYTHONPATH": f"{REPOSITORY}{os.pathsep}{REPOSITORY / 'lambdas'}"}
    output = file.with_suffix(".answer")
    with output.open("wb") as out:
        child = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=out)
        most = most_megabytes_until_its_end(child)
    said = output.read_text()
    return child.returncode, json.loads(said) if said else {}, most


def each_once(rows: int) -> bytes:
    """How often each row is put in the end."""
    return bytes(int(row % EVERY_BAD != 0) for row in range(rows))


def progress(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.with_name(f"{file.name}.mailroom-progress").read_text())
    return found


def refused(file: Path) -> list[str]:
    """The lines of the file of refused ones, below its header."""
    return file.with_name(f"{file.name}.mailroom-rejected.csv").read_text().splitlines()[1:]


@pytest.mark.parametrize("event", DEATHS)
def test_killed_at_any_point_and_resumed_each_row_is_put_once_and_each_bad_line_refused_once(
    tmp_path: Path, event: str
) -> None:
    file, counts = people(tmp_path, FEW)
    number = {"put": 700, "line refused": 5}.get(event, 1)
    killed, said, _ = imported(file, counts, event, f"{number}")
    assert (killed, said) == (-signal.SIGKILL, {})
    assert max(counts.read_bytes()) <= 1
    code, answer, _ = imported(file, counts)
    assert code == 0
    assert counts.read_bytes() == each_once(FEW)
    bad = FEW // EVERY_BAD
    assert (answer["put"] + answer["existed"], answer["refused"]) == (FEW - bad, bad)
    assert [line.partition(",")[0] for line in refused(file)] == [
        f"{row + 2}" for row in range(0, FEW, EVERY_BAD)
    ]
    assert not file.with_name(f"{file.name}.mailroom-progress").exists()


@pytest.mark.parametrize("event", ["put", "line refused"])
def test_killed_again_and_again_each_row_is_put_once_and_each_bad_line_refused_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    # Each process notes what it does at once: so all of them come further.
    file, counts = people(tmp_path, FEW)
    monkeypatch.setenv("NOTED_EVERY", "0.01")
    offsets = []
    for _ in range(4):
        assert imported(file, counts, event, {"put": "600", "line refused": "6"}[event])[0] == -signal.SIGKILL
        assert max(counts.read_bytes()) <= 1
        offsets.append(progress(file)["offset"])
    code, answer, _ = imported(file, counts)
    assert (code, answer["resumed"]) == (0, True)
    assert counts.read_bytes() == each_once(FEW)
    assert len(refused(file)) == FEW // EVERY_BAD
    assert [0, *offsets, file.stat().st_size] == sorted({0, *offsets, file.stat().st_size})


def test_100_000_rows_killed_half_way_are_each_put_once_and_take_no_more_memory_than_few(
    tmp_path: Path,
) -> None:
    few_file, few_counts = people(tmp_path, FEW)
    _, _, few = imported(few_file, few_counts)
    file, counts = people(tmp_path, MANY)
    killed, _, most = imported(file, counts, "put", "50000")
    assert killed == -signal.SIGKILL
    assert 0 < progress(file)["offset"] < file.stat().st_size
    code, answer, memory = imported(file, counts)
    assert (code, answer["resumed"]) == (0, True)
    assert counts.read_bytes() == each_once(MANY)
    assert len(refused(file)) == MANY // EVERY_BAD
    assert max(most, memory) - few < SPARE_MB


def test_without_its_progress_an_import_puts_nothing_twice(tmp_path: Path) -> None:
    file, counts = people(tmp_path, FEW)
    assert imported(file, counts, "put", "1000")[0] == -signal.SIGKILL
    before = counts.read_bytes().count(1)
    for path in tmp_path.glob("*.mailroom-*"):
        path.unlink()
    _, answer, _ = imported(file, counts)
    assert counts.read_bytes() == each_once(FEW)
    assert (answer["existed"], answer["resumed"]) == (before, False)


def test_what_the_progress_counts_is_in_the_mailbox_when_it_is_killed(tmp_path: Path) -> None:
    file, counts = people(tmp_path, FEW)
    assert imported(file, counts, "put", "2500")[0] == -signal.SIGKILL
    known = progress(file)
    rows = known["line"] - 2
    assert counts.read_bytes()[:rows] == each_once(FEW)[:rows]
    assert known["counts"]["put"] + known["counts"]["refused"] == rows


def test_a_file_that_has_changed_since_is_not_gone_on_with(tmp_path: Path) -> None:
    file, counts = people(tmp_path, FEW)
    assert imported(file, counts, "put", "1000")[0] == -signal.SIGKILL
    with file.open("a") as lines:
        lines.write("p-1,late@example.com,Late\n")
    before = counts.read_bytes()
    code, answer, _ = imported(file, counts)
    assert (code, answer) == (1, {})
    assert counts.read_bytes() == before


def test_two_processes_do_not_import_one_file_at_a_time(tmp_path: Path) -> None:
    file, counts = people(tmp_path, FEW)
    other = Source(file)
    other.lock()
    assert imported(file, counts)[0] == 1
    assert not any(counts.read_bytes())
    other.close()
    assert imported(file, counts)[0] == 0


def test_an_import_that_is_stopped_by_hand_ends_what_is_under_way_and_goes_on_from_there(
    tmp_path: Path,
) -> None:
    file, counts = people(tmp_path, FEW)
    code, answer, _ = imported(file, counts, CTRL_C, "700")
    assert (code, answer["state"], answer["failed"]) == (0, "interrupted", 0)
    assert 700 <= answer["put"] <= 700 + WORKERS
    assert sum(counts.read_bytes()) == answer["put"] == progress(file)["counts"]["put"]
    _, answer, _ = imported(file, counts)
    assert (answer["state"], answer["existed"]) == ("done", 0)
    assert counts.read_bytes() == each_once(FEW)
