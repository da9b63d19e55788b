"""The suite of the proof finds what becomes of mails if a worker dies."""

import json
import re
import socket
import sys
import threading
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest

from mailroom_local.processes import LOOPBACK, wait_until
from tests.proof import page, rows, suite, trial
from tests.proof.proxy import Proxy
from tests.proof.rows import ROWS
from tests.proof.ses import SesServer
from tests.proof.suite import worst
from tests.proof.trial import COLUMNS, MAILS, PROMISED, Lane, Row, _judged
from tests.support import ROOT
from tests.unit.proof import planted_peer

RESULTS = json.loads((ROOT / "lab" / "bench" / "sent_once.json").read_text())
SECONDS = 60


class Echo:
    """Server that stores each line, and responds with it."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.listener = socket.create_server((LOOPBACK, 0))
        self.port = int(self.listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                while line := connection.recv(100):
                    self.lines.append(line)
                    connection.sendall(line)


@pytest.mark.parametrize(
    ("stop", "reached", "received"),
    [(0, [], []), (1, [b"1"], []), (2, [b"1"], [b"1"]), (3, [b"1", b"2"], [b"1"])],
)
def test_the_proxy_of_the_proof_stops_a_worker_before_a_call_or_before_its_response_arrives(
    stop: int, reached: list[bytes], received: list[bytes]
) -> None:
    server, kills = Echo(), list[int]()
    proxy = Proxy({"echo": server.port})
    proxy.arm(stop, lambda: kills.append(stop))
    responses = []
    with closing(socket.create_connection((LOOPBACK, proxy.ports["echo"]))) as worker:
        for call in (b"1", b"2"):
            try:
                worker.sendall(call)
                response = worker.recv(100)
            except OSError:
                response = b""
            if not response:
                break
            responses.append(response)
    assert wait_until(lambda: kills == [stop], SECONDS)
    assert (server.lines, responses, proxy.points) == (reached, received, stop + 1)
    proxy.close()
    server.listener.shutdown(socket.SHUT_RDWR)
    server.listener.close()


@pytest.mark.parametrize(
    ("sends", "early", "waiting", "failed", "ended"),
    [
        ({"mail-1": 1}, {"mail-1"}, "", "", {}),
        ({"mail-1": 2}, {"mail-1"}, "", "", {"sent_twice": 1}),
        ({"mail-1": 1}, set(), "", "", {"late": 1}),
        ({}, set(), "", "", {"lost": 1}),
        ({}, set(), "mail-1", "", {"stuck": 1}),
        ({}, set(), "mail-10", "", {"lost": 1}),
        ({"mail-1": 1}, {"mail-1"}, "mail-1", "", {"stuck": 1}),
        ({}, set(), "", "mail-1", {"unknown": 1}),
    ],
)
def test_the_proof_judges_a_mail_by_what_ses_accepted_and_what_the_compared_system_still_has(
    sends: dict[str, int], early: set[str], waiting: str, failed: str, ended: dict[str, int]
) -> None:
    counts = _judged(["mail-1"], sends, early, {"waiting": waiting, "failed": failed})
    assert {name: count for name, count in counts.items() if count} == {"stops": 1, **ended}


def test_each_column_of_the_proof_has_the_highest_count_among_the_runs() -> None:
    results = [(0, Counter(stops=1, lost=1)), (0, Counter(stops=1)), (1, Counter(stops=2, late=2))]
    assert worst(results) == dict.fromkeys(COLUMNS, 0) | {"stops": 2, "lost": 1, "late": 2}


@pytest.mark.process
@pytest.mark.parametrize(("planted", "column"), [("double", "sent_twice"), ("loss", "lost")])
def test_the_proof_counts_lost_or_repeated_mails_of_a_faulty_system_in_their_own_column(
    planted: str, column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "POLL_SECONDS", 0.02)
    program = (sys.executable, "-m", "tests.unit.proof.planted_peer")
    row = Row(planted, (*program, "worker"), (*program, "producer"), "never", variables={"PLANTED": planted})
    ses, queue = SesServer(), planted_peer.Queue()
    lane = Lane(row, ses, {"queue": queue.port}, "0", tmp_path)
    try:
        ends = [lane.trial(stop) for stop in range(lane.points())]
    finally:
        lane.close()
        queue.shutdown()
        queue.server_close()
        ses.close()
    others = [name for name in COLUMNS[1:] if name not in (column, "late")]
    assert sum(end[column] for end in ends) >= MAILS
    assert not any(end[name] for end in ends for name in others)


def test_the_proof_leaves_out_systems_that_need_redis_on_a_machine_without_redis_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(rows, "_REDIS", [])
    monkeypatch.setenv("PATH", "")
    results = suite.count_rows({name: ROWS[name] for name in ("celery", "bullmq")})
    assert all(str(reason).startswith("needs redis-server") for reason in results.values())


def test_the_recorded_proof_has_every_system_and_shows_all_promises_of_mailroom_as_kept() -> None:
    assert list(RESULTS["rows"]) == list(ROWS)
    assert not any(RESULTS["rows"]["mailroom"][name] for name in PROMISED)


def test_both_recorded_runs_of_the_proof_have_the_same_verdict_in_each_cell_of_its_table() -> None:
    assert page.verdicts(RESULTS["again"]) == page.verdicts(RESULTS["rows"])


def test_the_pages_and_the_picture_of_the_proof_show_its_recorded_results() -> None:
    assert all(page.table(RESULTS) in path.read_text() for path in page.PAGES)
    assert page.PICTURE.read_text() == page.picture(RESULTS)


@pytest.mark.parametrize(
    ("lock", "package"),
    [
        ("celery_redis/requirements.txt", "celery"),
        ("post_office/requirements.txt", "django-post-office"),
        ("post_office/requirements.txt", "django-ses"),
        ("procrastinate_postgres/requirements.txt", "procrastinate"),
        ("bullmq_redis/package.json", "bullmq"),
    ],
)
def test_the_page_on_the_proof_names_the_locked_version_of_each_compared_package(
    lock: str, package: str
) -> None:
    text = (ROOT / "tests" / "proof" / lock).read_text()
    version = re.search(rf'^"?{package}(==|": ")([0-9.]+)', text.replace("    ", ""), re.MULTILINE)
    assert version
    assert f"{version[2]} " in page.PAGES[1].read_text().replace(",", " ")


@pytest.mark.parametrize("lock", sorted((ROOT / "tests" / "proof").glob("*/*lock*.json")))
def test_a_lock_file_of_npm_does_not_name_a_registry(lock: Path) -> None:
    packages = json.loads(lock.read_text())["packages"]
    assert not [name for name, package in packages.items() if "resolved" in package]
