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


def failure_of_step(step: Step, seconds: float = 5) -> tuple[str, ScriptedServer]:
    with scripted(step) as server:
        with pytest.raises(OutcomeUnknown) as caught:
            ProviderApi(seconds).post(server.url + SECRET, {"To": "+15555550100"})
        return str(caught.value), server


def test_a_refused_connection_proves_that_the_request_was_not_sent() -> None:
    with pytest.raises(NotSent, match="Connection refused"):
        ProviderApi(5).post(closed() + SECRET)


def test_a_host_name_that_does_not_resolve_proves_that_the_request_was_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*arguments: object, **more: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with pytest.raises(NotSent, match=r"fax\.invalid does not resolve: Name or service not known"):
        ProviderApi(5).post("http://fax.invalid" + SECRET)


def test_a_connection_that_was_not_made_in_time_proves_that_the_request_was_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NotSent, match=LATE):
        ProviderApi(0.2).post(f"https://127.0.0.1:{silent.getsockname()[1]}{SECRET}")


@pytest.mark.parametrize(
    "step", [Break(), Answer(200, {"sid": "1"}, cut=True)], ids=["before the answer", "in the middle"]
)
def test_a_connection_that_breaks_after_the_request_leaves_the_outcome_unknown_without_a_retry(
    step: Step,
) -> None:
    text, server = failure_of_step(step)
    assert len(server.requests) == 1
    assert "5555550100" not in text


def test_a_response_that_does_not_arrive_in_time_leaves_the_outcome_unknown_without_a_retry() -> None:
    text, server = failure_of_step(Silence(), seconds=0.2)
    assert len(server.requests) == 1
    assert text == LATE


def test_reading_a_slow_response_body_ends_at_the_deadline() -> None:
    clock = FakeClock()
    drops = Answer(200, b"drip, drop", halfway=lambda: clock.advance(6))
    with scripted(drops) as server, pytest.raises(OutcomeUnknown, match=LATE):
        ProviderApi(5, monotonic=clock).get(server.url)


def test_reading_a_response_body_that_stops_halfway_ends_at_the_deadline() -> None:
    stopped = Event()
    with scripted(Answer(200, b"drip, drop", halfway=lambda: stopped.wait(10))) as server:
        with pytest.raises(OutcomeUnknown, match=LATE):
            ProviderApi(0.2).get(server.url)
        stopped.set()


def test_a_request_fails_if_the_head_of_the_response_arrives_after_the_deadline() -> None:
    clock = FakeClock()
    late = scripted(lambda: clock.advance(6))
    with late as server, pytest.raises(OutcomeUnknown, match=LATE):
        ProviderApi(5, monotonic=clock).get(server.url)


def test_a_response_body_over_the_size_limit_leaves_the_outcome_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mailroom.http.https.MAX_BODY_BYTES", 1000)
    assert "AnswerTooLong" in failure_of_step(Answer(200, b"x" * 5000))[0]


def test_the_traceback_of_a_failed_request_does_not_show_the_cause_with_its_url() -> None:
    with pytest.raises(NotSent) as caught:
        ProviderApi(5).post(closed() + SECRET)
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None


def test_each_request_asks_the_provider_to_close_the_connection() -> None:
    with scripted(Answer()) as server:
        api = ProviderApi(5)
        for _ in range(3):
            api.get(server.url)
        assert [request.headers["connection"] for request in server.requests] == ["close"] * 3


def test_requests_ignore_a_proxy_and_netrc_credentials_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login eve password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", closed())
    with scripted(Answer()) as server:
        assert ProviderApi(5, {"Authorization": "Bearer key"}).get(server.url).status == 200
        assert server.requests[0].headers["authorization"] == "Bearer key"


def test_the_body_of_a_response_is_read_as_utf_8() -> None:
    with scripted(Answer(200, {"name": "Müller"})) as server:
        assert "M\\u00fcller" in ProviderApi(5).get(server.url).text
    with scripted(Answer(200, "Müller".encode())) as server:
        assert ProviderApi(5).get(server.url).text == "Müller"


def test_query_parameters_are_encoded_into_the_url() -> None:
    with scripted(Answer()) as server:
        ProviderApi(5).get(server.url + "/faxes", {"To": "+15555550100", "page[size]": 7})
        assert server.requests[0].query == {"To": "+15555550100", "page[size]": "7"}


def test_an_api_key_with_invalid_characters_is_refused_before_a_request_is_sent() -> None:
    with scripted(Answer()) as server, pytest.raises(InvalidRequest, match="is not a header value") as caught:
        ProviderApi(5, {"Authorization": "Bearer key\nX-A: b"}).get(server.url)
    assert server.requests == []
    assert "key" not in str(caught.value)


def test_a_provider_url_with_a_forbidden_scheme_or_address_is_refused() -> None:
    for url in ("ftp://fax.example", "http://169.254.169.254/latest"):
        with pytest.raises(InvalidRequest, match="cannot be called: "):
            ProviderApi(5).get(url)
