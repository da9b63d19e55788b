"""A POST, over real connections on the loopback address."""

import socket
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from mailroom.errors import InvalidRequest, RequestFailed
from mailroom.http.https import MAX_HEAD_BYTES, Answer, Deadline, HttpClient
from mailroom.http.provider_api import seconds_until
from mailroom.http.url_policy import RequestTarget
from tests.support.unit.loopback import Server, drips, saying, serving, status
from tests.support.unit.shared import NOW, FakeClock

HEADERS = {"Content-Type": "application/json", "User-Agent": "mailroom-webhook"}


def post_to_server(
    server: Server,
    deadline: Deadline | None = None,
    path: str = "/a?b=c",
    addresses: tuple[str, ...] = ("127.0.0.1",),
) -> Answer:
    target = RequestTarget("http", "hooks.example", server.port, path, addresses)
    return HttpClient().post(target, HEADERS, b'{"a":1}', deadline or Deadline(60))


def failure_of_post(server: Server, deadline: Deadline | None = None) -> str:
    with pytest.raises(RequestFailed) as fault:
        post_to_server(server, deadline)
    return str(fault.value)


def test_a_webhook_request_is_a_plain_post_without_cookies_or_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with serving(status(200, "Set-Cookie: a=b")) as server:
        for _ in range(2):
            assert post_to_server(server).status == 200
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
def test_the_response_has_the_status_that_the_server_sent(code: int) -> None:
    with serving(status(code)) as server:
        assert post_to_server(server).status == code


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
def test_a_broken_response_body_does_not_change_the_status_of_the_response(rest: str) -> None:
    with serving(saying(f"HTTP/1.1 200 OK\r\n{rest}".encode())) as server:
        assert post_to_server(server).status == 200


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_returned_as_the_response_and_is_not_followed(code: int) -> None:
    with serving(status(200)) as inner:
        with serving(status(code, f"Location: http://127.0.0.1:{inner.port}/")) as server:
            assert post_to_server(server).status == code
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
def test_the_header_retry_after_may_be_seconds_or_a_date_and_an_invalid_value_counts_as_zero(
    header: str, seconds: float
) -> None:
    with serving(status(429, f"Retry-After: {header}")) as server:
        headers = post_to_server(server).headers
    assert seconds_until(headers["retry-after"], headers, FakeClock()()) == seconds


def silent(sock: socket.socket) -> None:
    """Wait until the client gives up."""
    sock.recv(1)


def test_a_silent_server_delays_a_request_only_until_the_deadline() -> None:
    with serving(silent) as server:
        assert failure_of_post(server, Deadline(0.2)) == "did not answer in time"


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\nX-Long: ", b"HTTP/1.1 100 Continue\r\n"])
def test_a_slow_server_delays_a_request_only_until_the_deadline(clock: FakeClock, first: bytes) -> None:
    with serving(drips(first, clock)) as server:
        assert failure_of_post(server, Deadline(5, clock)) == "did not answer in time"


def test_a_slow_response_body_neither_changes_nor_delays_the_status(clock: FakeClock) -> None:
    with serving(drips(b"HTTP/1.1 200 OK\r\n\r\n", clock)) as server:
        assert post_to_server(server, Deadline(1_000_000, clock)).status == 200


def test_a_server_that_does_not_read_delays_a_request_only_until_the_deadline() -> None:
    full = socket.create_server(("127.0.0.1", 0))
    target = RequestTarget("http", "hooks.example", full.getsockname()[1], "/", ("127.0.0.1",))
    with full, pytest.raises(RequestFailed, match="did not answer in time"):
        HttpClient().post(target, HEADERS, b"x" * 50_000_000, Deadline(0.2))


def test_an_endless_response_body_is_not_read_to_its_end() -> None:
    read: list[int] = []

    def endless(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        read.extend(sock.send(b"x" * 65536) for _ in range(10_000))

    with serving(endless) as server:
        assert post_to_server(server).status == 200
    assert len(read) < 10_000


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 70_000, "AnswerTooLong"),
        (b"HTTP/1.1 200 OK\r\n" + (b"X-A: " + b"a" * 2000 + b"\r\n") * 60, "AnswerTooLong"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 5000, "AnswerTooLong"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", "BadStatusLine"),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nnot HTTP\r\n", "BadStatusLine"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "BadStatusLine"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "BadStatusLine"),
        (b"HTTP/1.1 200", "BadStatusLine"),
        (b"HTTP/2 200 OK\r\n\r\n", "BadStatusLine"),
        (b"HTTP/1.1 99999 OK\r\n\r\n", "BadStatusLine"),
        (b"\x00\xff" * 100, "BadStatusLine"),
    ],
)
def test_a_response_that_is_not_http_or_is_endless_is_an_error(answer: bytes, kind: str) -> None:
    with serving(saying(answer)) as server:
        said = failure_of_post(server)
    assert said == f"sent no valid HTTP response ({kind})"


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-A: b\r\n"]
)
def test_a_connection_that_breaks_within_the_head_of_the_response_is_an_error(answer: bytes) -> None:
    with serving(saying(answer)) as server:
        assert failure_of_post(server) == "broke off: RemoteDisconnected"


def request_whole(server: Server) -> Answer:
    target = RequestTarget("http", "hooks.example", server.port, "/", ("127.0.0.1",))
    return HttpClient().request("POST", target, HEADERS, b"{}", Deadline(60))


INTERIM = [f"HTTP/1.1 {code} Wait\r\nLink: </a.css>; rel=preload\r\n\r\n" for code in range(100, 200)]
FINAL = "HTTP/1.1 201 Created\r\nX-A: b\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize(
    "heads",
    [
        *([each] for code, each in enumerate(INTERIM, 100) if code != 101),
        INTERIM[2:] * 10,
        ["HTTP/1.1 103 Early Hints\r\n" + "Link: <a>\r\n" * 500 + "\r\n"],
        ["HTTP/1.1 103\n\n"],
    ],
)
def test_interim_responses_are_skipped_before_the_final_response(heads: list[str]) -> None:
    with serving(saying("".join([*heads, FINAL]).encode())) as server:
        assert request_whole(server) == Answer(201, {"x-a": "b", "content-length": "2"}, b"ok")
        assert post_to_server(server) == Answer(201, {"x-a": "b", "content-length": "2"})


@pytest.mark.parametrize("field", ["X-A: b\r\n", "a:" + "b" * 500 + "\r\n", "a:\n"])
def test_the_head_of_a_response_is_accepted_at_the_size_limit_and_refused_above_it(field: str) -> None:
    end = "Content-Length: 2\r\n\r\n"
    head = "HTTP/1.1 200 OK\r\n" + field * ((MAX_HEAD_BYTES - 100) // len(field))
    head += f"X-Rest: {'r' * (MAX_HEAD_BYTES - len(head) - len(end) - 10)}\r\n{end}"
    assert len(head) == MAX_HEAD_BYTES
    with serving(saying(f"{head}ok".encode())) as server:
        assert (request_whole(server).body, post_to_server(server).status) == (b"ok", 200)
    with serving(saying(f"HTTP/1.1  {head[9:]}ok".encode())) as server:
        assert failure_of_post(server) == "sent no valid HTTP response (AnswerTooLong)"
        with pytest.raises(RequestFailed, match="AnswerTooLong"):
            request_whole(server)


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"])
def test_endless_interim_heads_delay_a_request_only_until_the_deadline(
    clock: FakeClock, first: bytes
) -> None:
    def hinting(sock: socket.socket) -> None:
        sock.sendall(first)
        while True:
            sock.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            clock.advance(0.1)

    with serving(hinting) as server:
        assert failure_of_post(server, Deadline(5, clock)) == "did not answer in time"


@pytest.mark.parametrize(
    ("status_line", "framing", "body"),
    [
        ("200 OK", "Content-Length: 5", b"hello"),
        ("200 OK", "Transfer-Encoding: chunked", b"hello"),
        ("200 OK", "X-A: b", b"5\r\nhello\r\n0\r\n\r\nrest"),
        ("204 No Content", "Content-Length: 5", b""),
    ],
)
def test_the_end_of_a_response_body_follows_from_the_final_head_and_not_from_interim_heads(
    status_line: str, framing: str, body: bytes
) -> None:
    content = b"5\r\nhello\r\n0\r\n\r\nrest" if "Content-Length" not in framing else b"hello rest"
    response = f"{INTERIM[3]}HTTP/1.1 {status_line}\r\n{framing}\r\n\r\n".encode() + content
    with serving(saying(response)) as server:
        assert request_whole(server).body == body


def test_a_response_is_read_even_if_the_server_sends_it_and_closes_before_the_request_ends() -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n")
    theirs.close()
    target = RequestTarget("http", "hooks.example", 80, "/", ("8.8.8.8",))
    answer = HttpClient(connect=lambda _address, _seconds: ours).post(target, HEADERS, b"{}", Deadline(5))
    assert answer.status == 410


def test_a_request_to_a_closed_port_raises_an_error() -> None:
    with serving(status(200)) as server:
        pass
    assert failure_of_post(server) == "cannot be reached: Connection refused"


def connecting(*troubles: OSError | None, port: int) -> tuple[HttpClient, list[tuple[str, float]]]:
    """Return a client that raises `troubles` in turn and then connects to `port`, and its connections."""
    asked: list[tuple[str, float]] = []
    left = [*troubles]

    def connect(address: tuple[str, int], seconds: float) -> socket.socket:
        asked.append((address[0], seconds))
        trouble = left.pop(0) if left else None
        if trouble is not None:
            raise trouble
        return socket.create_connection(("127.0.0.1", port), seconds)

    return HttpClient(connect=connect), asked


def test_the_checked_ip_addresses_of_a_host_are_tried_in_order_and_share_the_remaining_time() -> None:
    with serving(status(200)) as server:
        https, asked = connecting(OSError(101, "unreachable"), TimeoutError(), port=server.port)
        target = RequestTarget(
            "http", "hooks.example", server.port, "/", ("2600::1", "8.8.8.8", "1.1.1.1", "9.9.9.9")
        )
        assert https.post(target, HEADERS, b"{}", Deadline(8)).status == 200
    assert [address for address, _ in asked] == ["2600::1", "8.8.8.8", "1.1.1.1"]
    assert [round(seconds) for _, seconds in asked] == [2, 3, 4]


def test_a_request_that_was_sent_is_not_repeated_at_the_next_address() -> None:
    with serving(saying(b"")) as server:
        https, asked = connecting(port=server.port)
        target = RequestTarget("http", "hooks.example", server.port, "/", ("8.8.8.8", "1.1.1.1"))
        with pytest.raises(RequestFailed):
            https.post(target, HEADERS, b"{}", Deadline(5))
    assert (len(asked), len(server.requests)) == (1, 1)


@pytest.mark.parametrize("value", ["a\r\nX-B: c", "a\nb", "\x00", "é"])
def test_a_request_header_with_a_line_break_or_an_invalid_character_is_refused(value: str) -> None:
    with serving(status(200)) as server:
        https, _ = connecting(port=server.port)
        target = RequestTarget("http", "hooks.example", server.port, "/", ("8.8.8.8",))
        with pytest.raises(InvalidRequest, match="is not a header value"):
            https.post(target, {"webhook-id": value}, b"{}", Deadline(5))
