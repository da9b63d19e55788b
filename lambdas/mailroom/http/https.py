"""HTTP client for single requests to checked targets: it connects only to the checked addresses, verifies
certificates, and limits the time and size of a request.

The module uses plain sockets, and http.client only to read bodies, for these reasons. `requests-hardened`
1.3.0 checks only the first address, and lacks both a list of allowed networks and a time-out for the whole
request. urllib3 and http.client resolve the host themselves, and a server that sends its bytes very slowly
can block them for ever. http.client treats any interim response except 100 as the final response, and has
fixed limits for the head.
"""

import io
import math
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from functools import cache
from http.client import BadStatusLine, HTTPException, HTTPResponse, IncompleteRead, RemoteDisconnected
from types import SimpleNamespace

from msgspec import Struct

from mailroom.clock import Clock
from mailroom.errors import ConnectError, InvalidRequest, OutcomeUnknown
from mailroom.http.url_policy import RequestTarget

MAX_HEAD_BYTES = 64 * 1024
"""Maximum number of bytes of the head of a response, including the interim responses before it."""
MAX_BODY_BYTES = 4 * 1024 * 1024
"""Maximum number of bytes of a body that is read completely."""
MAX_UNWANTED_BYTES = 16 * 1024
"""Maximum number of bytes that are read of a body if the caller needs only the status."""
UNWANTED_SECONDS = 1.0
"""Maximum number of seconds for reading a body that the caller does not need."""

Connect = Callable[[tuple[str, int], float], socket.socket]
_HEADER = re.compile(r"[ -~]*")
# The status 101 (Switching Protocols) is not matched: Mailroom's requests never ask to switch protocols, and
# the bytes after such a response would not be HTTP.
_STATUS_LINE = re.compile(rb"HTTP/1\.[0-9] +(?!101)([1-9][0-9]{2})\s")
_FRAMING = ("Transfer-Encoding", "Content-Length")


class Deadline:
    """Time limit of a request and its response, `seconds` from now."""

    def __init__(self, seconds: float, monotonic: Clock = time.monotonic) -> None:
        self._monotonic = monotonic
        self._end = monotonic() + seconds

    def left(self) -> float:
        """Return the remaining seconds, which are positive, as a time-out for a socket. Raises TimeoutError
        if no time is left."""
        seconds = self._end - self._monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def share(self, among: int) -> "Deadline":
        """Return the deadline of one of `among` tries, which share the time equally. Raises TimeoutError."""
        return Deadline(self.left() / among, self._monotonic)

    def within(self, seconds: float) -> "Deadline":
        """Return a deadline in `seconds`, or the end of this deadline if that is sooner. Raises
        TimeoutError."""
        return Deadline(min(seconds, self.left()), self._monotonic)


class AnswerTooLong(HTTPException):
    """Error of a response with too many bytes."""


class BoundedStream(io.RawIOBase):
    """Stream of the bytes from a socket, with a maximum number of bytes and a deadline. The deadline holds
    even if the bytes arrive one by one."""

    def __init__(self, sock: socket.socket, deadline: Deadline, room: int) -> None:
        self._sock = sock
        self._deadline = deadline
        self.room = room
        """Number of bytes that may still be read."""

    def end_within(self, seconds: float) -> None:
        """Move the deadline to `seconds` from now, unless the deadline is sooner."""
        self._deadline = self._deadline.within(seconds)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # the type that BufferedReader passes
        if not self.room:
            raise AnswerTooLong
        self._sock.settimeout(self._deadline.left())
        size = self._sock.recv_into(buffer[: self.room])
        # `recv_into` may return after the deadline, so the deadline is checked once more.
        self._deadline.left()
        self.room -= size
        return size


class Answer(Struct, frozen=True):
    """Response to an HTTP request."""

    status: int
    headers: dict[str, str] = {}
    """Headers by their names in lower case."""
    body: bytes = b""

    @property
    def text(self) -> str:
        """Body decoded as UTF-8, the encoding of JSON."""
        return self.body.decode("utf-8", "replace")


@dataclass
class HttpClient:
    """HTTP client that makes each request only once.

    The client does not follow redirects, stores neither cookies nor connections, and ignores proxies and
    credentials in the environment.
    """

    context: ssl.SSLContext | None = None
    connect: Connect = socket.create_connection
    connect_seconds: float = math.inf
    """Maximum number of seconds for connecting to one address."""

    def post(
        self, target: RequestTarget, headers: Mapping[str, str], body: bytes, deadline: Deadline
    ) -> Answer:
        """Make one POST, and return the response without its body. Raises RequestFailed."""
        return self.request("POST", target, headers, body, deadline, whole=False)

    def request(
        self,
        method: str,
        target: RequestTarget,
        headers: Mapping[str, str],
        body: bytes,
        deadline: Deadline,
        *,
        whole: bool = True,
    ) -> Answer:
        """Make one request, and return the response, with its body if `whole`. Raises RequestFailed."""
        request = _head(method, target, headers, len(body)) + body
        # Errors are raised `from None`, because their cause may quote the request, which must not reach a
        # log.
        try:
            sock = self._open(target, deadline)
        except OSError as error:
            raise ConnectError(_reason(error, "cannot be reached")) from None
        try:
            with sock:
                _send(sock, request, deadline)
                return _read(sock, method, deadline, whole=whole)
        except (OSError, HTTPException, ValueError) as error:
            raise OutcomeUnknown(_reason(error, "broke off")) from None

    def _open(self, target: RequestTarget, deadline: Deadline) -> socket.socket:
        """Return a connection to the first address that accepts one. The addresses that were not tried yet
        share the remaining time."""
        trouble: OSError = OSError("no address")
        for tried, address in enumerate(target.addresses):
            share = deadline.share(len(target.addresses) - tried)
            try:
                return self._open_at(address, target, share.within(self.connect_seconds))
            except OSError as error:
                trouble = error
        raise trouble

    def _open_at(self, address: str, target: RequestTarget, deadline: Deadline) -> socket.socket:
        if target.scheme == "http":
            return self.connect((address, target.port), deadline.left())
        context = self.context or _shared()
        sock = self.connect((address, target.port), deadline.left())
        try:
            sock.settimeout(deadline.left())
            return context.wrap_socket(sock, server_hostname=target.host)
        except BaseException:
            sock.close()
            raise


def tls() -> ssl.SSLContext:
    """Return a TLS context that verifies a server's certificate and name against the system's CA
    certificates."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


@cache
def _shared() -> ssl.SSLContext:
    """Return the TLS context of the process, which is created only once, because reading the CA certificates
    takes about 20 ms."""
    return tls()


def _head(method: str, target: RequestTarget, headers: Mapping[str, str], length: int) -> bytes:
    fields = {"Host": target.authority, **headers}
    if length or method == "POST":
        fields["Content-Length"] = str(length)
    fields["Connection"] = "close"
    for name, value in fields.items():
        if not _HEADER.fullmatch(value):
            raise InvalidRequest(f"{name}: is not a header value; use printable ASCII")
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {target.path_and_query} HTTP/1.1\r\n{lines}\r\n".encode("ascii")


def _send(sock: socket.socket, data: bytes, deadline: Deadline) -> None:
    """Send data in pieces, because the time-out of a TLS socket's `sendall` is for each piece and not for the
    whole."""
    remaining = memoryview(data)
    # A server may respond (413, 410) and close the connection before it has read the whole request. The
    # response is still read, so these errors are ignored.
    with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
        while remaining:
            sock.settimeout(deadline.left())
            remaining = remaining[sock.send(remaining[:65536]) :]


def _read(sock: socket.socket, method: str, deadline: Deadline, *, whole: bool) -> Answer:
    max_bytes = MAX_BODY_BYTES if whole else MAX_UNWANTED_BYTES
    stream = BoundedStream(sock, deadline, MAX_HEAD_BYTES)
    reader: io.BufferedReader = io.BufferedReader(stream)
    with reader:
        status, headers = _final_head(reader)
        stream.room += max_bytes
        body = b""
        with _response(status, headers, method, reader) as response:
            if whole:
                body = _whole(response)
            else:
                # The caller needs only the status, so only a little of the body is read. Closing the
                # connection without reading would look like a crash to the server, and waiting for the whole
                # body would delay the next endpoint. A chunk of negative length raises ValueError.
                with suppress(OSError, HTTPException, ValueError):
                    stream.end_within(UNWANTED_SECONDS)
                    response.read(max_bytes)
        return Answer(status, {name.lower(): value for name, value in headers.items()}, body)


def _final_head(reader: io.BufferedReader) -> tuple[int, Message]:
    """Return the status and the headers of the final response, after any number of interim responses (RFC
    9110, 15.2)."""
    while True:
        lines = [reader.readline()]
        match = _STATUS_LINE.match(lines[0])
        if lines[0] and not match:
            raise BadStatusLine(repr(lines[0]))
        while lines[-1] not in (b"\r\n", b"\n", b""):
            lines.append(reader.readline())
        if not match or not lines[-1]:
            raise RemoteDisconnected("the head of the response is incomplete")
        if not match[1].startswith(b"1"):
            return int(match[1]), HeaderParser().parsestr(b"".join(lines[1:]).decode("latin-1"))


def _response(status: int, headers: Message, method: str, reader: io.BufferedReader) -> HTTPResponse:
    """Return an http.client response that reads the body. It gets only the headers that determine the body's
    length (RFC 9112, 6.3)."""
    framing = (f"{name}: {headers[name]}\r\n" for name in _FRAMING if headers[name])
    head = io.BytesIO(f"HTTP/1.1 {status}\r\n{''.join(framing)}\r\n".encode("latin-1"))
    response = HTTPResponse(SimpleNamespace(makefile=lambda _: head), method=method)  # type: ignore[arg-type]
    response.begin()
    response.fp = reader
    return response


def _whole(response: HTTPResponse) -> bytes:
    """Return the whole body. It is read in pieces, so that a false Content-Length cannot allocate much
    memory."""
    body = b""
    while piece := response.read1(65536):
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise AnswerTooLong
    if response.length:
        raise IncompleteRead(body)
    return body


def _reason(error: Exception, fault: str) -> str:
    """Return a description of an error without text from the server, which may repeat the URL."""
    match error:
        case TimeoutError():
            return "did not answer in time"
        case ssl.SSLCertVerificationError():
            return f"has an invalid certificate: {error.verify_message}"
        case ssl.SSLError():
            return f"does not accept TLS: {error.reason}"
        case OSError():
            return f"{fault}: {error.strerror or type(error).__name__}"
        case _:
            return f"sent no valid HTTP response ({type(error).__name__})"
