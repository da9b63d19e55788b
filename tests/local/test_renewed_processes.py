"""Processes that `mailroom up` restarts on a running stage: those with other code or settings, or that have
ended."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from mailroom_local.aws import Endpoints
from mailroom_local.processes import StartError, wait_until
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import RENEWABLE, State, Workspace, load_state

ENDPOINTS = Endpoints("http://127.0.0.1:1", "http://127.0.0.1:2")
NAMES = (*sorted(RENEWABLE), "ministack")


class FileServers:
    """Workspace with processes that serve files, in place of those of a stage."""

    def __init__(self, folder: Path) -> None:
        self.workspace = Workspace(folder)
        self.running = State(ENDPOINTS)

    def start(self, *names: str) -> list[int]:
        """Start processes, unless they are current. Return their ids."""
        for name in names:
            options = ("--bind", "127.0.0.1", "--directory", str(self.workspace.folder), "0")
            lifecycle.start_module(self.workspace, self.running, name, *options)
        return [self.running.processes[name].pid for name in names]

    def kill(self, name: str) -> None:
        process = self.running.processes[name]
        os.killpg(process.pid, signal.SIGKILL)
        assert wait_until(lambda: not process.alive(), 5)


@pytest.fixture
def edited_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of a project that was last edited before this process began."""
    monkeypatch.setattr("mailroom_stacks.app.cache._STARTED", float("inf"))
    monkeypatch.setattr(lifecycle, "CDK_JSON", tmp_path / "cdk.json")
    monkeypatch.setattr(lifecycle, "CHANNELS", tmp_path / "channels")
    (tmp_path / "cdk.json").write_text("{}")
    return tmp_path


@pytest.fixture
def stage_of_servers(edited_project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServers]:
    monkeypatch.setattr(lifecycle, "MODULES", dict.fromkeys(NAMES, "http.server"))
    stage = FileServers(edited_project / ".local")
    yield stage
    lifecycle.stop(stage.workspace)


def test_the_local_stage_does_not_restart_a_process_that_has_the_current_code_and_settings(
    stage_of_servers: FileServers,
) -> None:
    assert stage_of_servers.start("console", "pump") == stage_of_servers.start("console", "pump")


@pytest.mark.parametrize("changed", ["cdk.json", "channels/telegram/__init__.py"])
def test_a_changed_setting_or_own_channel_restarts_the_console_and_not_the_pump(
    stage_of_servers: FileServers, edited_project: Path, changed: str
) -> None:
    console, pump = stage_of_servers.start("console", "pump")
    (edited_project / changed).parent.mkdir(parents=True, exist_ok=True)
    (edited_project / changed).write_text("[]")
    assert stage_of_servers.start("pump") == [pump]
    assert stage_of_servers.start("console") != [console]
    saved = load_state(stage_of_servers.workspace)
    assert saved is not None
    assert saved == stage_of_servers.running


@pytest.mark.parametrize("package", ["mailroom_local", "mailroom_ops", "mailroom_stacks", "mailroom"])
def test_changed_code_of_any_package_changes_the_fingerprint_of_the_console(
    package: str, edited_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (edited_project / package).mkdir()
    for name in ("mailroom_local", "mailroom_ops"):
        (edited_project / name).mkdir(exist_ok=True)
    monkeypatch.setattr("mailroom_local.stage.lifecycle.PACKAGE", edited_project / "mailroom_local")
    monkeypatch.setattr(lifecycle, "STACKS", edited_project / "mailroom_stacks")
    monkeypatch.setattr(lifecycle, "LIBRARY", edited_project)
    before = {name: lifecycle._fingerprint(name) for name in ("console", "pump")}
    (edited_project / package / "module.py").write_text("")
    assert lifecycle._fingerprint("console") != before["console"]
    assert (lifecycle._fingerprint("pump") != before["pump"]) == (package == "mailroom_local")


def test_a_process_that_was_started_while_its_code_was_edited_is_restarted_by_the_next_command(
    stage_of_servers: FileServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom_stacks.app.cache._STARTED", 0.0)
    first = stage_of_servers.start("console")
    assert stage_of_servers.start("console") == first
    monkeypatch.setattr("mailroom_stacks.app.cache._STARTED", 1.0)
    assert stage_of_servers.start("console") != first


def test_the_local_stage_restarts_a_process_that_has_ended(stage_of_servers: FileServers) -> None:
    first = stage_of_servers.start("pump")
    stage_of_servers.kill("pump")
    assert stage_of_servers.start("pump") != first


def test_the_start_of_a_process_that_ends_early_fails_at_once_with_its_error(
    stage_of_servers: FileServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(lifecycle.MODULES, "console", "no_such_module")
    monkeypatch.setattr(lifecycle, "START_SECONDS", 3_600)
    stage_of_servers.start("console")
    with pytest.raises(StartError, match=r"(?s)did not start.*No module named.*If the error is in your code"):
        lifecycle._await(stage_of_servers.workspace, stage_of_servers.running, "console", lambda: False)


def test_ended_simulators_are_restarted_only_if_their_data_were_stored(stage_of_servers: FileServers) -> None:
    first = stage_of_servers.start("providers")
    stage_of_servers.kill("providers")
    with pytest.raises(StartError, match=r"without storing messages.*: mailroom down, then mailroom up"):
        stage_of_servers.start("providers")
    stage_of_servers.workspace.memory.write_bytes(b"data")
    assert stage_of_servers.start("providers") != first


def test_the_local_stage_counts_as_running_until_a_process_ends_that_cannot_be_restarted(
    stage_of_servers: FileServers,
) -> None:
    stage_of_servers.start("console", "ministack")
    stage_of_servers.kill("console")
    assert stage_of_servers.running.running
    stage_of_servers.kill("ministack")
    assert not stage_of_servers.running.running


def test_a_second_update_of_the_local_stage_finishes_an_interrupted_first_one(
    stage_of_servers: FileServers, edited_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stacks are deployed, but the console still has the earlier settings."""
    deployed = list[Path]()
    monkeypatch.setattr(lifecycle, "synthesize", lambda: edited_project / "assembly")
    monkeypatch.setattr(
        lifecycle, "compare", lambda *_, **__: CompletedProcess((), 0, "There were no differences")
    )
    monkeypatch.setattr(lifecycle, "_deploy", lambda _workspace, _running, stacks, _: deployed.append(stacks))
    stage_of_servers.start(*RENEWABLE)
    stage_of_servers.workspace.assembly.symlink_to(edited_project / "assembly")
    assert not lifecycle.update(stage_of_servers.workspace, stage_of_servers.running, lambda _: None)
    (edited_project / "cdk.json").write_text("[]")
    assert lifecycle.update(stage_of_servers.workspace, stage_of_servers.running, lambda _: None)
    assert deployed == [edited_project / "assembly"]


def test_a_missing_sign_in_process_requires_an_update_only_in_a_stage_with_a_sign_in(
    stage_of_servers: FileServers, edited_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "synthesize", lambda: edited_project / "assembly")
    monkeypatch.setattr(lifecycle, "compare", lambda *_, **__: CompletedProcess((), 0, ""))
    monkeypatch.setattr(lifecycle, "_deploy", lambda *_: None)
    stage_of_servers.start(*RENEWABLE - {"sign-in"})
    stage_of_servers.workspace.assembly.symlink_to(edited_project / "assembly")
    assert not lifecycle.update(stage_of_servers.workspace, stage_of_servers.running, lambda _: None)
    stage_of_servers.running.sign_in = True
    assert lifecycle.update(stage_of_servers.workspace, stage_of_servers.running, lambda _: None)


def test_a_stop_of_the_local_stage_deletes_the_stored_data_of_its_simulators(
    stage_of_servers: FileServers,
) -> None:
    stage_of_servers.start("providers")
    stage_of_servers.workspace.memory.write_bytes(b"data")
    assert lifecycle.stop(stage_of_servers.workspace)
    assert not stage_of_servers.workspace.memory.exists()
