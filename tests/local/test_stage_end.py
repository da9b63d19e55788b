"""The end of a stage leaves no process and no file behind."""

from pathlib import Path

from mailroom_local.processes import wait_until
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import Workspace


def test_the_scratch_folder_is_moved_away_at_once_and_its_files_are_deleted_soon(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "stage")
    (workspace.scratch / "code").mkdir(parents=True)
    (workspace.scratch / "code" / "handler.py").write_text("")
    assert not lifecycle.stop(workspace)
    assert not workspace.scratch.exists()
    assert wait_until(lambda: not list(workspace.folder.iterdir()), 30)
