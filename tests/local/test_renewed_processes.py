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


class Stage:
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
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of a project that was last edited before this process began."""
    monkeypatch.setattr("mailroom_stacks.app.cache._STARTED", float("inf"))
    monkeypatch.setattr(lifecycle, "CDK_JSON", tmp_path / "cdk.json")
    monkeypatch.setattr(lifecycle, "CHANNELS", tmp_path / "channels")
    (tmp_path / "cdk.json").write_text("{}")
    return tmp_path


@pytest.fixture
def stage(sources: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(lifecycle, "MODULES", dict.fromkeys(NAMES, "http.server"))
    stage = Stage(sources / ".local")
    yield stage
    lifecycle.stop(stage.workspace)


def test_a_process_with_the_current_code_and_settings_continues(stage: Stage) -> None:
    assert stage.start("console", "pump") == stage.start("console", "pump")


@pytest.mark.parametrize("changed", ["cdk.json", "channels/telegram/__init__.py"])
def test_another_setting_or_own_channel_restarts_the_console_but_not_the_pump(
    stage: Stage, sources: Path, changed: str
) -> None:
    console, pump = stage.start("console", "pump")
    (sources / changed).parent.mkdir(parents=True, exist_ok=True)
    (sources / changed).write_text("[]")
    assert stage.start("pump") == [pump]
    assert stage.start("console") != [console]
    saved = load_state(stage.workspace)
    assert saved is not None
    assert saved == stage.running


@pytest.mark.parametrize("package", ["mailroom_local", "mailroom_ops", "mailroom_stacks", "mailroom"])
def test_other_code_of_each_package_changes_the_fingerprint_of_the_console(
    package: str, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sources / package).mkdir()
    for name in ("mailroom_local", "mailroom_ops"):
        (sources / name).mkdir(exist_ok=True)
    monkeypatch.setattr("mailroom_local.stage.lifecycle.PACKAGE", sources / "mailroom_local")
    monkeypatch.setattr(lifecycle, "STACKS", sources / "mailroom_stacks")
    monkeypatch.setattr(lifecycle, "LIBRARY", sources)
    before = {name: lifecycle._fingerprint(name) for name in ("console", "pump")}
    (sources / package / "module.py").write_text("")
    assert lifecycle._fingerprint("console") != before["console"]
    assert (lifecycle._fingerprint("pump") != before["pump"]) == (package == "mailroom_local")


def test_a_process_that_was_started_while_its_code_was_edited_is_restarted_by_the_next_command(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom_stacks.app.cache._STARTED", 0.0)
    first = stage.start("console")
    assert stage.start("console") == first
    monkeypatch.setattr("mailroom_stacks.app.cache._STARTED", 1.0)
    assert stage.start("console") != first


def test_a_process_that_has_ended_is_started_again(stage: Stage) -> None:
    first = stage.start("pump")
    stage.kill("pump")
    assert stage.start("pump") != first


def test_a_process_that_ends_before_it_is_ready_is_not_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(lifecycle.MODULES, "console", "no_such_module")
    monkeypatch.setattr(lifecycle, "START_SECONDS", 3_600)
    stage.start("console")
    with pytest.raises(StartError, match=r"(?s)did not start.*No module named.*If the error is in your code"):
        lifecycle._await(stage.workspace, stage.running, "console", lambda: False)


def test_the_simulators_are_restarted_only_if_the_file_has_their_data(stage: Stage) -> None:
    first = stage.start("providers")
    stage.kill("providers")
    with pytest.raises(StartError, match=r"without storing messages.*: mailroom down, then mailroom up"):
        stage.start("providers")
    stage.workspace.memory.write_bytes(b"data")
    assert stage.start("providers") != first


def test_a_stage_runs_until_a_process_ends_that_cannot_be_restarted(stage: Stage) -> None:
    stage.start("console", "ministack")
    stage.kill("console")
    assert stage.running.running
    stage.kill("ministack")
    assert not stage.running.running


def test_an_interrupted_update_is_finished_by_the_next_one(
    stage: Stage, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stacks are deployed, but the console still has the earlier settings."""
    deployed = list[Path]()
    monkeypatch.setattr(lifecycle, "synthesize", lambda: sources / "assembly")
    monkeypatch.setattr(
        lifecycle, "compare", lambda *_, **__: CompletedProcess((), 0, "There were no differences")
    )
    monkeypatch.setattr(lifecycle, "_deploy", lambda _workspace, _running, stacks, _: deployed.append(stacks))
    stage.start(*RENEWABLE)
    stage.workspace.assembly.symlink_to(sources / "assembly")
    assert not lifecycle.update(stage.workspace, stage.running, lambda _: None)
    (sources / "cdk.json").write_text("[]")
    assert lifecycle.update(stage.workspace, stage.running, lambda _: None)
    assert deployed == [sources / "assembly"]


def test_only_a_stage_with_a_sign_in_lacks_its_console(
    stage: Stage, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "synthesize", lambda: sources / "assembly")
    monkeypatch.setattr(lifecycle, "compare", lambda *_, **__: CompletedProcess((), 0, ""))
    monkeypatch.setattr(lifecycle, "_deploy", lambda *_: None)
    stage.start(*RENEWABLE - {"sign-in"})
    stage.workspace.assembly.symlink_to(sources / "assembly")
    assert not lifecycle.update(stage.workspace, stage.running, lambda _: None)
    stage.running.sign_in = True
    assert lifecycle.update(stage.workspace, stage.running, lambda _: None)


def test_the_end_of_a_stage_removes_the_data_of_its_simulators(stage: Stage) -> None:
    stage.start("providers")
    stage.workspace.memory.write_bytes(b"data")
    assert lifecycle.stop(stage.workspace)
    assert not stage.workspace.memory.exists()
