"""The embedded server: it comes up with a password, and goes whatever becomes of who started it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from mailroom_local.database import postgres
from mailroom_local.database.postgres import Postgres
from mailroom_local.processes import LOOPBACK, StartError, free_ports, wait_until
from tests.support import ROOT

PASSWORD = "a word of one's own"


def connects(port: int, password: str = PASSWORD) -> bool:
    try:
        psycopg.connect(
            host=LOOPBACK,
            port=port,
            user=postgres.USER,
            password=password,
            dbname=postgres.DATABASE,
            connect_timeout=2,
        ).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter, as a repository mostly is; a test's own is for its owner alone."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("death", [signal.SIGTERM, signal.SIGKILL])
def test_an_embedded_server_and_its_data_are_removed_if_the_process_that_started_it_dies(
    open_folder: Path, death: signal.Signals
) -> None:
    folder, (port,) = open_folder / "server", free_ports(1)
    environment = os.environ | {postgres.PASSWORD_VARIABLE: PASSWORD, "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "mailroom_local.database.postgres",
        "--folder",
        str(folder),
        "--port",
        str(port),
    ]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == f"{postgres.LISTENING}{LOOPBACK}:{port}\n"
        assert (folder / "data").is_dir()
        assert connects(port)
        assert not connects(port, "another word")
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert PASSWORD not in listed
        starter.send_signal(death)
    assert wait_until(lambda: not connects(port), 10)
    # Folders may disappear while `walk` reads them, which it ignores.
    assert wait_until(lambda: not any(inside or files for _, inside, files in os.walk(folder)), 10)


def test_a_start_of_the_embedded_server_at_a_port_in_use_raises_the_servers_error(
    server: Postgres, tmp_path: Path
) -> None:
    with (
        pytest.raises(StartError, match="Address already in use"),
        postgres.serving(tmp_path / "two", server.port),
    ):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="others run the programs where they lie")
def test_the_embedded_server_runs_a_copy_of_programs_that_its_unprivileged_user_cannot_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_reaches", lambda user, folder: False)
    with postgres.serving(tmp_path / "server", password=PASSWORD) as server:
        assert PASSWORD not in repr(server)
        running = Path(f"/proc/{server.guard}/cmdline").read_bytes()
        assert f"{server.folder}/programs/".encode() in running
        with server.connect() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not server.folder.exists()
