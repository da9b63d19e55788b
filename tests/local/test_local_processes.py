"""Background processes and the state file: what runs is found again, what is gone is not mistaken."""

import os
import socket
import sys
from pathlib import Path

import pytest

from mailroom_local.aws import Endpoints
from mailroom_local.processes import LOOPBACK, Process, kept_ports, start, wait_until
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import State, Workspace, load_state

SLEEP = "import time; print('up', flush=True); time.sleep(60)"
ENDPOINTS = Endpoints("http://127.0.0.1:1", "http://127.0.0.1:2")


def sleeper(workspace: Workspace) -> Process:
    return start([sys.executable, "-c", SLEEP], SLEEP[:12], workspace.log("sleeper"), os.environ)


def test_a_started_process_writes_its_log_and_can_be_stopped(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    process = sleeper(workspace)
    assert process.alive()
    assert wait_until(lambda: workspace.tail("sleeper") == "up", 5)
    assert process.stop()
    assert not process.alive()
    assert not process.stop()
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)


def test_a_new_start_of_a_process_makes_its_earlier_log_readable_for_its_user_only(tmp_path: Path) -> None:
    log = Workspace(tmp_path).log("sleeper")
    log.write_text("of an earlier start")
    log.chmod(0o644)
    process = sleeper(Workspace(tmp_path))
    try:
        assert log.stat().st_mode & 0o777 == 0o600
    finally:
        process.stop()


def test_the_local_stage_does_not_stop_a_process_that_has_a_stored_id_and_another_command() -> None:
    stranger = Process(os.getpid(), "a command that is not ours")
    assert not stranger.alive()
    assert not stranger.stop()


def test_a_stop_of_the_local_stage_ends_its_stored_processes_and_deletes_its_state(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    State(ENDPOINTS, {"sleeper": sleeper(workspace)}, {"Output": "x"}).save(workspace)
    known = load_state(workspace)
    assert known is not None
    assert (known.running, known.endpoints, known.outputs) == (True, ENDPOINTS, {"Output": "x"})
    assert lifecycle.stop(workspace)
    assert not known.running
    assert load_state(workspace) is None


def test_a_stop_of_a_crashed_or_already_stopped_local_stage_returns_false(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    State(ENDPOINTS, {"gone": Process(2**22 - 1, "long gone")}).save(workspace)
    assert not lifecycle.stop(workspace)
    assert not lifecycle.stop(workspace)


def test_a_damaged_state_file_is_ignored(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.state.write_text('{"endpoints": {}')
    assert load_state(workspace) is None


def test_the_local_stage_uses_the_ports_of_its_last_start_again(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "ports.json"
    first = kept_ports(file, 4)
    assert kept_ports(file, 4) == first
    assert len(set(first)) == 4


def test_the_local_stage_replaces_a_stored_port_that_is_in_use_and_keeps_the_others(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    first = kept_ports(file, 3)
    with socket.socket() as other:
        other.bind((LOOPBACK, first[1]))
        other.listen()
        second = kept_ports(file, 3)
    assert (second[0], second[2]) == (first[0], first[2])
    assert second[1] != first[1]


@pytest.mark.parametrize("text", ["", "{", "[1]", '["x"]', "[70000]", "null"])
def test_the_local_stage_replaces_a_ports_file_without_valid_ports(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ports.json"
    file.write_text(text)
    assert kept_ports(file, 2) == kept_ports(file, 2)
