"""Requests to providers: sent once, in bounded time, and what a failure proves."""

import socket
from threading import Event

import pytest

from mailroom.errors import InvalidRequest, NotSent, OutcomeUnknown
from mailroom.http.provider_api import ProviderApi
from tests.support.unit.scripted_server import Answer, Break, ScriptedServer, Silence, Step, closed, scripted
from tests.support.unit.shared import FakeClock

LATE = "did not answer in time"
SECRET = "/faxes?To=%2B15555550100"


def failure(step: Step, seconds: float = 5) -> tuple[str, ScriptedServer]:
    with scripted(step) as server:
        with pytest.raises(OutcomeUnknown) as caught:
            ProviderApi(seconds).post(server.url + SECRET, {"To": "+15555550100"})
        return str(caught.value), server


def test_a_connection_that_was_refused_proves_that_nothing_went_out() -> None:
    with pytest.raises(NotSent, match="Connection refused"):
        ProviderApi(5).post(closed() + SECRET)


def test_a_name_that_does_not_resolve_proves_that_nothing_went_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object, **more: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with pytest.raises(NotSent, match=r"fax\.invalid does not resolve: Name or service not known"):
        ProviderApi(5).post("http://fax.invalid" + SECRET)


def test_a_connection_that_was_not_made_in_time_proves_that_nothing_went_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NotSent, match=LATE):
        ProviderApi(0.2).post(f"https://127.0.0.1:{silent.getsockname()[1]}{SECRET}")


@pytest.mark.parametrize(
    "step", [Break(), Answer(200, {"sid": "1"}, cut=True)], ids=["before the answer", "in the middle"]
)
def test_a_connection_that_breaks_after_the_request_proves_nothing_and_is_not_tried_again(step: Step) -> None:
    text, server = failure(step)
    assert len(server.requests) == 1
    assert "5555550100" not in text


def test_an_answer_that_does_not_come_in_time_proves_nothing_and_is_not_tried_again() -> None:
    text, server = failure(Silence(), seconds=0.2)
    assert len(server.requests) == 1
    assert text == LATE


def test_a_body_that_drips_ends_at_the_deadline() -> None:
    clock = FakeClock()
    drops = Answer(200, b"drip, drop", halfway=lambda: clock.advance(6))
    with scripted(drops) as server, pytest.raises(OutcomeUnknown, match=LATE):
        ProviderApi(5, monotonic=clock).get(server.url)


def test_a_body_that_stops_half_way_ends_at_the_deadline() -> None:
    stopped = Event()
    with scripted(Answer(200, b"drip, drop", halfway=lambda: stopped.wait(10))) as server:
        with pytest.raises(OutcomeUnknown, match=LATE):
            ProviderApi(0.2).get(server.url)
        stopped.set()


def test_a_head_that_comes_at_the_last_moment_leaves_no_time_for_a_body() -> None:
    clock = FakeClock()
    late = scripted(lambda: clock.advance(6))
    with late as server, pytest.raises(OutcomeUnknown, match=LATE):
        ProviderApi(5, monotonic=clock).get(server.url)


def test_a_body_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailroom.http.https.MAX_BODY_BYTES", 1000)
    assert "AnswerTooLong" in failure(Answer(200, b"x" * 5000))[0]


def test_the_causes_text_with_its_url_is_not_part_of_the_traceback() -> None:
    with pytest.raises(NotSent) as caught:
        ProviderApi(5).post(closed() + SECRET)
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None


def test_no_connection_is_kept_for_the_next_request() -> None:
    with scripted(Answer()) as server:
        api = ProviderApi(5)
        for _ in range(3):
            api.get(server.url)
        assert [request.headers["connection"] for request in server.requests] == ["close"] * 3


def test_the_environment_names_neither_a_proxy_nor_credentials(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login eve password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", closed())
    with scripted(Answer()) as server:
        assert ProviderApi(5, {"Authorization": "Bearer key"}).get(server.url).status == 200
        assert server.requests[0].headers["authorization"] == "Bearer key"


def test_an_answers_body_is_utf_8() -> None:
    with scripted(Answer(200, {"name": "Müller"})) as server:
        assert "M\\u00fcller" in ProviderApi(5).get(server.url).text
    with scripted(Answer(200, "Müller".encode())) as server:
        assert ProviderApi(5).get(server.url).text == "Müller"


def test_a_query_belongs_to_the_url() -> None:
    with scripted(Answer()) as server:
        ProviderApi(5).get(server.url + "/faxes", {"To": "+15555550100", "page[size]": 7})
        assert server.requests[0].query == {"To": "+15555550100", "page[size]": "7"}


def test_a_key_with_invalid_characters_is_a_fault_of_ours_and_nothing_went_out() -> None:
    with scripted(Answer()) as server, pytest.raises(InvalidRequest, match="is not a header value") as caught:
        ProviderApi(5, {"Authorization": "Bearer key\nX-A: b"}).get(server.url)
    assert server.requests == []
    assert "key" not in str(caught.value)


def test_a_forbidden_provider_url_is_a_fault_of_ours() -> None:
    for url in ("ftp://fax.example", "http://169.254.169.254/latest"):
        with pytest.raises(InvalidRequest, match="cannot be called: "):
            ProviderApi(5).get(url)
