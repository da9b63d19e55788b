"""The end of a stage leaves no process and no file behind."""

from pathlib import Path

from mailroom_local.processes import wait_until
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import Workspace


def test_a_stop_of_the_local_stage_moves_its_scratch_folder_away_and_deletes_its_files_later(
    tmp_path: Path,
) -> None:
    workspace = Workspace(tmp_path / "stage")
    (workspace.scratch / "code").mkdir(parents=True)
    (workspace.scratch / "code" / "handler.py").write_text("")
    assert not lifecycle.stop(workspace)
    assert not workspace.scratch.exists()
    assert wait_until(lambda: not list(workspace.folder.iterdir()), 30)
