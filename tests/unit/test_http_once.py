"""Requests to providers: sent once, in bounded time, and what a failure proves."""

import socket
from threading import Event

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectionError as RequestsConnectionError

from mailroom.http.once import NotSent, OnceSession, Unclear
from tests.unit.scripted_server import Answer, Break, ScriptedServer, Silence, Step, nobody, scripted
from tests.unit.support import FakeClock

LATE = "did not end in 5 s"
SECRET = "/faxes?To=%2B15555550100"


def failure(step: Step, seconds: float = 5) -> tuple[str, ScriptedServer]:
    with scripted(step) as server:
        with OnceSession(seconds) as session, pytest.raises(Unclear) as caught:
            session.post(server.url + SECRET, data={"To": "+15555550100"})
        return str(caught.value), server


def test_a_connection_that_was_refused_proves_that_nothing_went_out() -> None:
    with OnceSession(5) as session, pytest.raises(NotSent, match="NewConnectionError"):
        session.post(nobody() + SECRET)


def test_a_name_that_does_not_resolve_proves_that_nothing_went_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object, **more: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with OnceSession(5) as session, pytest.raises(NotSent, match="NameResolutionError"):
        session.post("http://fax.invalid" + SECRET)


def test_a_connection_that_was_not_made_in_time_proves_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*arguments: object, **more: object) -> None:
        raise urllib3.exceptions.ConnectTimeoutError("late")

    monkeypatch.setattr(urllib3.connection.HTTPConnection, "connect", late)
    with OnceSession(5) as session, pytest.raises(NotSent, match="ConnectTimeoutError"):
        session.post("http://127.0.0.1:9" + SECRET)


@pytest.mark.parametrize(
    "step", [Break(), Answer(200, {"sid": "1"}, cut=True)], ids=["before the answer", "in the middle"]
)
def test_a_connection_that_breaks_after_the_request_proves_nothing_and_is_not_tried_again(step: Step) -> None:
    text, server = failure(step)
    assert len(server.asked) == 1
    assert "5555550100" not in text


def test_an_answer_that_does_not_come_in_time_proves_nothing_and_is_not_tried_again() -> None:
    text, server = failure(Silence(), seconds=0.2)
    assert len(server.asked) == 1
    assert "ReadTimeout" in text


def test_a_body_that_comes_in_drops_is_over_at_the_deadline() -> None:
    clock = FakeClock()
    drops = Answer(200, b"drip, drop", halfway=lambda: clock.advance(6))
    with scripted(drops) as server, OnceSession(5, clock) as session, pytest.raises(Unclear, match=LATE):
        session.get(server.url)


def test_a_body_of_which_no_more_comes_is_over_at_the_deadline() -> None:
    stopped = Event()
    with scripted(Answer(200, b"drip, drop", halfway=lambda: stopped.wait(10))) as server:
        with OnceSession(0.2) as session, pytest.raises(Unclear, match=r"did not end in 0\.2 s"):
            session.get(server.url)
        stopped.set()


def test_a_head_that_comes_at_the_last_moment_leaves_no_time_for_a_body() -> None:
    clock = FakeClock()
    late = scripted(lambda: clock.advance(6))
    with late as server, OnceSession(5, clock) as session, pytest.raises(Unclear, match=LATE):
        session.get(server.url)


def test_a_body_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailroom.http.once.MAX_BODY_BYTES", 1000)
    assert "over 1000 bytes" in failure(Answer(200, b"x" * 5000))[0]


def test_the_causes_text_with_its_url_is_not_part_of_the_traceback() -> None:
    with OnceSession(5) as session, pytest.raises(NotSent) as caught:
        session.post(nobody() + SECRET)
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None


def test_a_redirect_is_an_answer_and_not_followed() -> None:
    with scripted(Answer(307, headers={"Location": "/elsewhere"})) as server, OnceSession(5) as session:
        assert session.post(server.url).status_code == 307
        assert session.get(server.url).status_code == 307
        assert len(server.asked) == 2


def test_no_connection_is_kept_for_the_next_request() -> None:
    with scripted(Answer()) as server, OnceSession(5) as session:
        adapter = session.get_adapter(server.url)
        assert isinstance(adapter, HTTPAdapter)
        for _ in range(3):
            session.get(server.url)
            assert len(adapter.poolmanager.pools) == 0
        assert [asked.headers["connection"] for asked in server.asked] == ["close"] * 3


def test_the_environment_names_neither_a_proxy_nor_credentials(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login eve password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", nobody())
    with scripted(Answer()) as server, OnceSession(5) as session:
        session.headers["Authorization"] = "Bearer key"
        assert session.get(server.url).status_code == 200
        assert server.asked[0].headers["authorization"] == "Bearer key"


def test_an_answer_reads_as_any_of_requests() -> None:
    with scripted(Answer(200, {"name": "Müller"})) as server, OnceSession(5) as session:
        assert session.get(server.url).json() == {"name": "Müller"}


def test_plain_requests_would_have_told_the_url() -> None:
    """Why the session has exceptions of its own."""
    with pytest.raises(RequestsConnectionError, match="5555550100"):
        requests.get(nobody() + SECRET, timeout=5)
