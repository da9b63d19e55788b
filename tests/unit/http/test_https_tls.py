"""Requests are verified by TLS against the host's name, whatever address they go to."""

import socket
import ssl
from pathlib import Path

import pytest

from mailroom.errors import RequestFailed
from mailroom.http.https import Answer, Deadline, HttpClient, tls
from mailroom.http.url_policy import RequestTarget
from tests.support.unit.loopback import Server, certificate, drips, server_tls, serving, status
from tests.support.unit.shared import FakeClock


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    certificate(folder, "hooks.example")
    certificate(folder, "other.example")
    certificate(folder, "127.0.0.1")
    certificate(folder, "late.example", days=-1)
    return folder


def post_over_tls(
    server: Server, host: str, trusted: Path | None, deadline: Deadline | None = None
) -> Answer:
    context = tls()
    if trusted is not None:
        context.load_verify_locations(trusted)
    target = RequestTarget("https", host, server.port, "/", ("127.0.0.1",))
    return HttpClient(context).post(target, {}, b"{}", deadline or Deadline(60))


def failure_over_tls(server: Server, host: str, trusted: Path | None) -> str:
    with pytest.raises(RequestFailed) as fault:
        post_over_tls(server, host, trusted)
    return str(fault.value)


def test_a_request_to_an_address_has_the_name_of_the_host_in_tls_and_in_the_host_header(
    certificates: Path,
) -> None:
    file = certificates / "hooks.example.pem"
    with serving(status(200), server_tls(file)) as server:
        assert post_over_tls(server, "hooks.example", file).status == 200
    assert server.names == ["hooks.example"]
    assert f"Host: hooks.example:{server.port}".encode() in server.requests[0]


def test_a_host_that_is_an_ip_address_is_accepted_with_a_certificate_for_that_address(
    certificates: Path,
) -> None:
    file = certificates / "127.0.0.1.pem"
    with serving(status(200), server_tls(file)) as server:
        assert post_over_tls(server, "127.0.0.1", file).status == 200


@pytest.mark.parametrize(
    ("presented", "trusted", "host", "reason"),
    [
        (
            "other.example",
            "other.example",
            "hooks.example",
            "Hostname mismatch, certificate is not valid for",
        ),
        ("hooks.example", "hooks.example", "127.0.0.1", "IP address mismatch, certificate is not valid for"),
        ("hooks.example", None, "hooks.example", "self-signed certificate"),
        ("hooks.example", "other.example", "hooks.example", "self-signed certificate"),
        ("late.example", "late.example", "late.example", "certificate has expired"),
    ],
)
def test_a_request_is_not_sent_to_a_server_with_an_invalid_certificate(
    certificates: Path, presented: str, trusted: str | None, host: str, reason: str
) -> None:
    with serving(status(200), server_tls(certificates / f"{presented}.pem")) as server:
        sentence = failure_over_tls(
            server, host, None if trusted is None else certificates / f"{trusted}.pem"
        )
    assert sentence.startswith(f"has an invalid certificate: {reason}")
    assert server.requests == []


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_a_server_that_only_supports_tls_versions_before_1_2_is_refused(certificates: Path) -> None:
    file = certificates / "hooks.example.pem"
    with serving(status(200), server_tls(file, highest=ssl.TLSVersion.TLSv1_1)) as server:
        assert failure_over_tls(server, "hooks.example", file).startswith("does not accept TLS: ")
    assert server.requests == []


def test_a_request_is_not_sent_to_a_server_without_tls() -> None:
    with serving(lambda sock: sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")) as server:
        target = RequestTarget("https", "hooks.example", server.port, "/", ("127.0.0.1",))
        with pytest.raises(RequestFailed):
            HttpClient().post(target, {}, b"{}", Deadline(0.3))
    assert b"POST" not in b"".join(server.requests)


def test_an_unanswered_tls_handshake_delays_a_request_only_until_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = RequestTarget("https", "hooks.example", listener.getsockname()[1], "/", ("127.0.0.1",))
        with pytest.raises(RequestFailed, match="did not answer in time"):
            HttpClient().post(target, {}, b"{}", Deadline(0.2))


def test_a_slow_response_through_tls_delays_a_request_only_until_the_deadline(
    certificates: Path, clock: FakeClock
) -> None:
    file = certificates / "hooks.example.pem"
    slow = drips(b"HTTP/1.1 200 OK\r\nX-Slow: ", clock)
    late = pytest.raises(RequestFailed, match="did not answer in time")
    with serving(slow, server_tls(file)) as server, late:
        post_over_tls(server, "hooks.example", file, Deadline(5, clock))
