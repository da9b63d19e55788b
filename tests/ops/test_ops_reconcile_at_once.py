"""Two `reconcile` on one machine: the second one is refused, for both would write one file."""

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.reconcile.lock import locked
from ops.reconcile.look import Head, Look
from ops.screen import Refused
from tests.ops.ops_support import ACCOUNT, REGION
from tests.ops.repair_support import RepairStage, repair_stage, run
from tests.pipeline.items import mail

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[RepairStage]:
    with repair_stage(monkeypatch, tmp_path) as stage:
        yield stage


@pytest.fixture
def look(tmp_path: Path) -> Path:
    """Where the look of the stage dev is kept."""
    (tmp_path / "mailroom").mkdir()
    return tmp_path / "mailroom" / f"reconcile-dev-{ACCOUNT}-{REGION}.jsonl"


@pytest.mark.parametrize("option", ["--yes", "--dry-run"])
def test_while_another_process_runs_it_is_refused_and_after_its_death_it_is_not(
    stage: RepairStage, look: Path, option: str
) -> None:
    stage.put(mail("a"))
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, look], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        result = run("reconcile", "--older-than", "0s", option, "--json")
        assert result.exit_code == 2
        assert "Another `mailroom reconcile` of dev runs on this machine: wait for its end" in result.stderr
        assert not result.stdout
        assert not stage.functions.invoked
        other.kill()
    again = run("reconcile", "--older-than", "0s", option, "--json")
    assert again.exit_code == (1 if option == "--dry-run" else 0)
    assert bool(stage.functions.invoked) == (option == "--yes")


def test_named_messages_are_put_back_beside_a_run_of_the_whole_stage(stage: RepairStage, look: Path) -> None:
    stage.put(mail("a"))
    with locked(look, "busy"):
        assert run("reconcile", "a", "--yes").exit_code == 0


def test_a_run_that_was_not_allowed_lets_the_next_one_go_on(stage: RepairStage) -> None:
    stage.put(mail("a"))
    assert run("reconcile", "--older-than", "0s", typed="n\n").exit_code == 1
    assert run("reconcile", "--older-than", "0s", "--yes").exit_code == 0


def test_a_file_that_its_holder_removed_is_made_anew_and_locked(tmp_path: Path) -> None:
    path = tmp_path / "look"
    with locked(path, "busy"):
        path.unlink()
        with locked(path, "busy"), pytest.raises(Refused, match="busy"), locked(path, "busy"):
            pass
    with locked(path, "busy"):
        pass


def test_a_new_look_in_the_place_of_an_old_one_stays_locked(tmp_path: Path) -> None:
    path = tmp_path / "look"
    with locked(path, "busy"):
        for about in ("ledger 900", "ledger 60"):
            Look.at(path, Head(about, 1.0, {"mailbox": 1, "ledger": 1}), 0.0)
        with pytest.raises(Refused, match="busy"), locked(path, "busy"):
            pass


def test_a_file_that_goes_between_opening_and_locking_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "look"
    flock = fcntl.flock

    def removed(file: int, operation: int) -> None:
        flock(file, operation)
        monkeypatch.setattr("fcntl.flock", flock)
        path.unlink()

    monkeypatch.setattr("fcntl.flock", removed)
    with locked(path, "busy"):
        assert path.exists()
        with pytest.raises(Refused), locked(path, "busy"):
            pass
