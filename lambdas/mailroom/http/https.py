"""One HTTP request out, to a checked target: pinned to its addresses, verified, bounded in time and size.

Plain sockets and the standard library's reader of bodies. `requests-hardened` 1.3.0 checks the first address
only, and has neither a list of allowed networks nor a time-out for the whole request. urllib3 and http.client
resolve the host themselves, and a server that drips bytes can hold them for ever. http.client takes any
interim response but 100 for the answer, and has limits of its own for a head.
"""

import io
import math
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.message import Message
from email.parser import HeaderParser
from functools import cache
from http.client import BadStatusLine, HTTPException, HTTPResponse, IncompleteRead, RemoteDisconnected
from types import SimpleNamespace

from msgspec import Struct

from mailroom.clock import Clock
from mailroom.http.url_policy import RequestTarget

MAX_HEAD_BYTES = 64 * 1024
"""Bytes of the heads of a response: its own, and those of interim responses before it."""
MAX_BODY_BYTES = 4 * 1024 * 1024
"""Bytes of an answer that is wanted whole."""
MAX_UNWANTED_BYTES = 16 * 1024
"""Bytes of an answer whose status is enough; the rest stays unread."""
UNWANTED_SECONDS = 1.0
"""What such a body may take once the status is known."""

Connect = Callable[[tuple[str, int], float], socket.socket]
_HEADER = re.compile(r"[ -~]*")
# 101 is not valid: no request asks to switch protocols, and what follows would be in another one.
_STATUS_LINE = re.compile(rb"HTTP/1\.[0-9] +(?!101)([1-9][0-9]{2})\s")
_FRAMING = ("Transfer-Encoding", "Content-Length")


class Unanswered(Exception):
    """No usable answer. The sentence follows the other side's name, and holds no URL."""


class NotSent(Unanswered):
    """No connection was made, so nothing went out."""


class Unclear(Unanswered):
    """No answer, or one that cannot be understood: nobody knows what the request did."""


class Deadline:
    """The end of an exchange, `seconds` from now."""

    def __init__(self, seconds: float, monotonic: Clock = time.monotonic) -> None:
        self._monotonic = monotonic
        self._end = monotonic() + seconds

    def left(self) -> float:
        """Seconds, more than 0: fit for a socket's time-out. Raises TimeoutError."""
        left = self._end - self._monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def share(self, among: int) -> "Deadline":
        """An equal share of the time that is left, for one of `among` tries."""
        return Deadline(self.left() / among, self._monotonic)

    def within(self, seconds: float) -> "Deadline":
        """A deadline in so many seconds, or this deadline if this one ends sooner. Raises TimeoutError."""
        return Deadline(min(seconds, self.left()), self._monotonic)


class AnswerTooLong(HTTPException):
    """More bytes than an answer may have."""


class BoundedStream(io.RawIOBase):
    """A socket's bytes, up to a number of them and to a deadline, however they drip."""

    def __init__(self, sock: socket.socket, deadline: Deadline, room: int) -> None:
        self._sock = sock
        self._deadline = deadline
        self.room = room
        """Bytes that may still be read."""

    def end_within(self, seconds: float) -> None:
        """Move the deadline to so many seconds from now, unless it is sooner."""
        self._deadline = self._deadline.within(seconds)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader hands in
        if not self.room:
            raise AnswerTooLong
        self._sock.settimeout(self._deadline.left())
        size = self._sock.recv_into(buffer[: self.room])
        self._deadline.left()  # the last bytes, too, have to come in time
        self.room -= size
        return size


class Answer(Struct, frozen=True):
    """What the other side said; names of headers are in lower case."""

    status: int
    headers: dict[str, str] = {}
    body: bytes = b""

    @property
    def text(self) -> str:
        """The body as UTF-8, as JSON is."""
        return self.body.decode("utf-8", "replace")


class HttpClient:
    """Makes the requests, each once. No redirect is followed, no cookie or connection kept, and neither proxy
    nor credentials are taken from the environment."""

    def __init__(
        self,
        context: ssl.SSLContext | None = None,
        connect: Connect = socket.create_connection,
        connect_seconds: float = math.inf,
    ) -> None:
        """`connect_seconds` is the longest that one address is tried."""
        self._context = context
        self._connect = connect
        self._connect_seconds = connect_seconds

    def post(
        self, target: RequestTarget, headers: Mapping[str, str], body: bytes, deadline: Deadline
    ) -> Answer:
        """The status and the headers that answer one POST. Raises NotSent or Unclear."""
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
        """The answer to one request, with its body if it is wanted `whole`. Raises NotSent or Unclear."""
        request = _head(method, target, headers, len(body)) + body
        # `from None`: a cause may quote what was sent, and a log has no use for it.
        try:
            sock = self._open(target, deadline)
        except OSError as error:
            raise NotSent(_reason(error, "cannot be reached")) from None
        try:
            with sock:
                _send(sock, request, deadline)
                return _read(sock, method, deadline, whole=whole)
        except (OSError, HTTPException, ValueError) as error:
            raise Unclear(_reason(error, "broke off")) from None

    def _open(self, target: RequestTarget, deadline: Deadline) -> socket.socket:
        """A connection to the first address that takes one; the others share what time is left."""
        trouble: OSError = OSError("no address")
        for tried, address in enumerate(target.addresses):
            share = deadline.share(len(target.addresses) - tried)
            try:
                return self._open_at(address, target, share.within(self._connect_seconds))
            except OSError as error:
                trouble = error
        raise trouble

    def _open_at(self, address: str, target: RequestTarget, deadline: Deadline) -> socket.socket:
        if target.scheme == "http":
            return self._connect((address, target.port), deadline.left())
        context = self._context or _shared()
        sock = self._connect((address, target.port), deadline.left())
        try:
            sock.settimeout(deadline.left())
            return context.wrap_socket(sock, server_hostname=target.host)
        except BaseException:
            sock.close()
            raise


def tls() -> ssl.SSLContext:
    """Certificates and names are verified, against what the system trusts."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


@cache
def _shared() -> ssl.SSLContext:
    """Made once a process: reading what the system trusts takes some 20 ms, and no endpoint waits for it."""
    return tls()


def _head(method: str, target: RequestTarget, headers: Mapping[str, str], length: int) -> bytes:
    fields = {"Host": target.authority, **headers}
    if length or method == "POST":
        fields["Content-Length"] = str(length)
    fields["Connection"] = "close"
    for name, value in fields.items():
        if not _HEADER.fullmatch(value):
            raise ValueError(f"{name}: not a header's value; use printable ASCII")
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {target.path_and_query} HTTP/1.1\r\n{lines}\r\n".encode("ascii")


def _send(sock: socket.socket, data: bytes, deadline: Deadline) -> None:
    """Piece by piece, as `sendall` of a TLS socket has a time-out for each piece, and not for all."""
    rest = memoryview(data)
    # Who answers before it has read everything (413, 410) may close on us: its answer is there to be read.
    with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
        while rest:
            sock.settimeout(deadline.left())
            rest = rest[sock.send(rest[:65536]) :]


def _read(sock: socket.socket, method: str, deadline: Deadline, *, whole: bool) -> Answer:
    most = MAX_BODY_BYTES if whole else MAX_UNWANTED_BYTES
    stream = BoundedStream(sock, deadline, MAX_HEAD_BYTES)
    reader: io.BufferedReader = io.BufferedReader(stream)
    with reader:
        status, headers = _final_head(reader)
        stream.room += most
        body = b""
        with _response(status, headers, method, reader) as response:
            if whole:
                body = _whole(response)
            else:
                # The status is the answer. A little of the rest is read: closing on it would look like a
                # crash, waiting for all of it would keep a worker from the next endpoint.
                with suppress(OSError, HTTPException, ValueError):  # the last: a chunk of negative length
                    stream.end_within(UNWANTED_SECONDS)
                    response.read(most)
        return Answer(status, {name.lower(): value for name, value in headers.items()}, body)


def _final_head(reader: io.BufferedReader) -> tuple[int, Message]:
    """Read heads to that of the final response, after any number of interim ones (RFC 9110, 15.2)."""
    while True:
        lines = [reader.readline()]
        match = _STATUS_LINE.match(lines[0])
        if lines[0] and not match:
            raise BadStatusLine(repr(lines[0]))
        while lines[-1] not in (b"\r\n", b"\n", b""):
            lines.append(reader.readline())
        if not match or not lines[-1]:
            raise RemoteDisconnected("no end of the head")
        if not match[1].startswith(b"1"):
            return int(match[1]), HeaderParser().parsestr(b"".join(lines[1:]).decode("latin-1"))


def _response(status: int, headers: Message, method: str, reader: io.BufferedReader) -> HTTPResponse:
    """Return http.client's reader of a body. Of the head it gets the framing alone (RFC 9112, 6.3)."""
    framing = (f"{name}: {headers[name]}\r\n" for name in _FRAMING if headers[name])
    head = io.BytesIO(f"HTTP/1.1 {status}\r\n{''.join(framing)}\r\n".encode("latin-1"))
    response = HTTPResponse(SimpleNamespace(makefile=lambda _: head), method=method)  # type: ignore[arg-type]
    response.begin()
    response.fp = reader
    return response


def _whole(response: HTTPResponse) -> bytes:
    """Read the body in pieces: the memory that a length or a chunk announces is never set aside at once."""
    body = b""
    while piece := response.read1(65536):
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise AnswerTooLong
    if response.length:
        raise IncompleteRead(body)
    return body


def _reason(error: Exception, what: str) -> str:
    """For people; never what the other side wrote, which may echo the URL."""
    match error:
        case TimeoutError():
            return "did not answer in time"
        case ssl.SSLCertVerificationError():
            return f"has a certificate that does not hold: {error.verify_message}"
        case ssl.SSLError():
            return f"cannot be spoken to by TLS: {error.reason}"
        case OSError():
            return f"{what}: {error.strerror or type(error).__name__}"
        case _:
            return f"gave no usable HTTP answer ({type(error).__name__})"
