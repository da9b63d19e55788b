"""One POST, over real connections on the loopback address."""

import socket
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from mailroom.http.https import Answer, Deadline, HttpClient, Unanswered
from mailroom.http.provider import seconds_until
from mailroom.http.url_policy import RequestTarget
from tests.support.unit.loopback import Server, drips, saying, serving, status
from tests.support.unit.shared import NOW, FakeClock

HEADERS = {"Content-Type": "application/json", "User-Agent": "mailroom-webhook"}


def post(
    server: Server,
    deadline: Deadline | None = None,
    path: str = "/a?b=c",
    addresses: tuple[str, ...] = ("127.0.0.1",),
) -> Answer:
    target = RequestTarget("http", "hooks.example", server.port, path, addresses)
    return HttpClient().post(target, HEADERS, b'{"a":1}', deadline or Deadline(60))


def trouble(server: Server, deadline: Deadline | None = None) -> str:
    with pytest.raises(Unanswered) as fault:
        post(server, deadline)
    return str(fault.value)


def test_the_request_is_a_plain_post_with_its_host_and_nothing_of_ours_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with serving(status(200, "Set-Cookie: a=b")) as server:
        for _ in range(2):
            assert post(server).status == 200
    head, _, body = server.requests[1].partition(b"\r\n\r\n")
    assert head.decode().split("\r\n") == [
        "POST /a?b=c HTTP/1.1",
        f"Host: hooks.example:{server.port}",
        "Content-Type: application/json",
        "User-Agent: mailroom-webhook",
        "Content-Length: 7",
        "Connection: close",
    ]
    assert body == b'{"a":1}'


@pytest.mark.parametrize("code", [200, 204, 299, 400, 410, 500, 599])
def test_the_status_is_the_answer(code: int) -> None:
    with serving(status(code)) as server:
        assert post(server).status == code


@pytest.mark.parametrize(
    "rest",
    [
        "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n",
        "Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "Content-Length: -5\r\n\r\nhello",
        "Content-Length: 99999999999999999999\r\n\r\nhello",
        "Content-Length: 5\r\n\r\nhel",
        "\r\nhello",
    ],
)
def test_what_is_wrong_with_a_body_changes_nothing_of_the_status(rest: str) -> None:
    with serving(saying(f"HTTP/1.1 200 OK\r\n{rest}".encode())) as server:
        assert post(server).status == 200


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_and_is_not_followed(code: int) -> None:
    with serving(status(200)) as inner:
        with serving(status(code, f"Location: http://127.0.0.1:{inner.port}/")) as server:
            assert post(server).status == code
        assert (len(server.requests), inner.requests) == (1, [])


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("0", 0),
        (format_datetime(datetime.fromtimestamp(NOW + 90, UTC), usegmt=True), 90),
        (format_datetime(datetime.fromtimestamp(NOW - 90, UTC), usegmt=True), 0),
        ("9" * 400, 0),
        ("-5", 0),
        ("soon", 0),
        ("", 0),
        ("1.5", 0),
        ("12\x1d", 0),
        ("Sat, 99 Nov 2026 09:00:00 GMT", 0),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str, seconds: float) -> None:
    with serving(status(429, f"Retry-After: {header}")) as server:
        headers = post(server).headers
    assert seconds_until(headers["retry-after"], headers, FakeClock()()) == seconds


def silent(sock: socket.socket) -> None:
    """Waits for the other side to give up."""
    sock.recv(1)


def test_a_server_that_says_nothing_holds_it_no_longer_than_the_deadline() -> None:
    with serving(silent) as server:
        assert trouble(server, Deadline(0.2)) == "did not answer in time"


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\nX-Long: ", b"HTTP/1.1 100 Continue\r\n"])
def test_a_server_that_takes_its_time_holds_it_no_longer_than_the_deadline(
    clock: FakeClock, first: bytes
) -> None:
    with serving(drips(first, clock)) as server:
        assert trouble(server, Deadline(5, clock)) == "did not answer in time"


def test_a_body_that_drips_changes_nothing_of_the_status_and_holds_it_no_longer(clock: FakeClock) -> None:
    with serving(drips(b"HTTP/1.1 200 OK\r\n\r\n", clock)) as server:
        assert post(server, Deadline(1_000_000, clock)).status == 200


def test_a_server_that_does_not_read_holds_it_no_longer_either() -> None:
    full = socket.create_server(("127.0.0.1", 0))
    target = RequestTarget("http", "hooks.example", full.getsockname()[1], "/", ("127.0.0.1",))
    with full, pytest.raises(Unanswered, match="did not answer in time"):
        HttpClient().post(target, HEADERS, b"x" * 50_000_000, Deadline(0.2))


def test_no_more_of_a_body_is_read_than_is_needed_to_end_it_well() -> None:
    read: list[int] = []

    def endless(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        read.extend(sock.send(b"x" * 65536) for _ in range(10_000))

    with serving(endless) as server:
        assert post(server).status == 200
    assert len(read) < 10_000


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 70_000, "LineTooLong"),
        (b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 200, "HTTPException"),
        (b"HTTP/1.1 200 OK\r\n" + (b"X-A: " + b"a" * 2000 + b"\r\n") * 60, "AnswerTooLong"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 5000, "AnswerTooLong"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "BadStatusLine"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "BadStatusLine"),
        (b"HTTP/1.1 99999 OK\r\n\r\n", "BadStatusLine"),
        (b"\x00\xff" * 100, "BadStatusLine"),
    ],
)
def test_an_answer_that_is_no_http_or_has_no_end_is_none(answer: bytes, kind: str) -> None:
    with serving(saying(answer)) as server:
        said = trouble(server)
    # Newer Pythons count interim answers themselves.
    assert said in {f"gave no usable HTTP answer ({each})" for each in (kind, "HTTPException")}


def test_a_connection_that_breaks_is_no_answer() -> None:
    with serving(saying(b"")) as server:
        assert trouble(server) == "broke off: RemoteDisconnected"


def test_who_answers_and_closes_before_the_end_of_the_request_is_heard() -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n")
    theirs.close()
    target = RequestTarget("http", "hooks.example", 80, "/", ("8.8.8.8",))
    answer = HttpClient(connect=lambda _address, _seconds: ours).post(target, HEADERS, b"{}", Deadline(5))
    assert answer.status == 410


def test_a_port_where_nobody_listens_is_no_answer() -> None:
    with serving(status(200)) as server:
        pass
    assert trouble(server) == "cannot be reached: Connection refused"


def connecting(*troubles: OSError | None, port: int) -> tuple[HttpClient, list[tuple[str, float]]]:
    """Connects to the server under any address, or fails as told; and what it was asked to connect to."""
    asked: list[tuple[str, float]] = []
    left = [*troubles]

    def connect(address: tuple[str, int], seconds: float) -> socket.socket:
        asked.append((address[0], seconds))
        trouble = left.pop(0) if left else None
        if trouble is not None:
            raise trouble
        return socket.create_connection(("127.0.0.1", port), seconds)

    return HttpClient(connect=connect), asked


def test_the_checked_addresses_are_tried_in_order_and_share_the_time() -> None:
    with serving(status(200)) as server:
        https, asked = connecting(OSError(101, "unreachable"), TimeoutError(), port=server.port)
        target = RequestTarget(
            "http", "hooks.example", server.port, "/", ("2600::1", "8.8.8.8", "1.1.1.1", "9.9.9.9")
        )
        assert https.post(target, HEADERS, b"{}", Deadline(8)).status == 200
    assert [address for address, _ in asked] == ["2600::1", "8.8.8.8", "1.1.1.1"]
    assert [round(seconds) for _, seconds in asked] == [2, 3, 4]


def test_a_request_that_went_out_is_not_made_again_at_the_next_address() -> None:
    with serving(saying(b"")) as server:
        https, asked = connecting(port=server.port)
        target = RequestTarget("http", "hooks.example", server.port, "/", ("8.8.8.8", "1.1.1.1"))
        with pytest.raises(Unanswered):
            https.post(target, HEADERS, b"{}", Deadline(5))
    assert (len(asked), len(server.requests)) == (1, 1)


@pytest.mark.parametrize("value", ["a\r\nX-B: c", "a\nb", "\x00", "é"])
def test_a_header_cannot_break_out_of_its_line(value: str) -> None:
    with serving(status(200)) as server:
        https, _ = connecting(port=server.port)
        target = RequestTarget("http", "hooks.example", server.port, "/", ("8.8.8.8",))
        with pytest.raises(ValueError, match="not a header's value"):
            https.post(target, {"webhook-id": value}, b"{}", Deadline(5))
