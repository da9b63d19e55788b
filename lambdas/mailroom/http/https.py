"""One POST to a checked target: pinned to its addresses, verified, bounded in time and size.

Plain sockets and the standard library's reader of answers. Of what there is, `requests-hardened` 1.3.0 checks
the first address alone, has no list of allowed networks and no time-out for the whole; urllib3 and
http.client resolve the host themselves and let a server that drips bytes hold them for ever.
"""

import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse

from msgspec import Struct

from mailroom.clock import Clock
from mailroom.http.deadline import BoundedStream, Deadline
from mailroom.http.url_policy import Target

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 16 * 1024
"""Of an answer; what is beyond stays unread."""
COURTESY_SECONDS = 1.0
"""What a body may take once the status is known."""

Connect = Callable[[tuple[str, int], float], socket.socket]
_HEADER = re.compile(r"[ -~]*")
_SECONDS = re.compile(r"[0-9]+")


class Answer(Struct, frozen=True):
    """What the other side said; `retry_after` in seconds from now, where it asked for a wait."""

    status: int
    retry_after: float | None


class Unanswered(Exception):
    """No usable answer: whether the request arrived is not known. The sentence does not name the host."""


class Https:
    """Makes the requests. No redirect is followed, no cookie kept, no proxy of the environment asked."""

    def __init__(
        self,
        context: ssl.SSLContext | None = None,
        connect: Connect = socket.create_connection,
        clock: Clock = time.time,
    ) -> None:
        self._context = context or tls()
        self._connect = connect
        self._clock = clock

    def post(self, target: Target, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Answer:
        """The answer to one POST, had before the deadline. Raises Unanswered."""
        try:
            with self._open(target, deadline) as sock:
                _send(sock, _head(target, headers, len(body)) + body, deadline)
                return self._read(sock, deadline)
        except (OSError, HTTPException) as error:
            raise Unanswered(_reason(error)) from error

    def _open(self, target: Target, deadline: Deadline) -> socket.socket:
        """A connection to the first address that takes one; the others share what time is left."""
        trouble: OSError = OSError("no address")
        for tried, address in enumerate(target.addresses):
            share = deadline.share(len(target.addresses) - tried)
            try:
                return self._open_at(address, target, share)
            except OSError as error:
                trouble = error
        raise trouble

    def _open_at(self, address: str, target: Target, deadline: Deadline) -> socket.socket:
        sock = self._connect((address, target.port), deadline.left())
        if target.scheme == "http":
            return sock
        try:
            sock.settimeout(deadline.left())
            return self._context.wrap_socket(sock, server_hostname=target.host)
        except BaseException:
            sock.close()
            raise

    def _read(self, sock: socket.socket, deadline: Deadline) -> Answer:
        stream = BoundedStream(sock, deadline, MAX_HEAD_BYTES + MAX_BODY_BYTES)
        response = HTTPResponse(stream, method="POST")  # type: ignore[arg-type] # it only calls makefile
        with response:
            response.begin()
            # The status is the answer. The rest is read as a courtesy, a short one: closing on it would look
            # like a crash, waiting for it would keep a worker from the next endpoint.
            with suppress(OSError, HTTPException, ValueError):  # the last: a chunk of negative length
                stream.hurry(COURTESY_SECONDS)
                response.read(MAX_BODY_BYTES)
            return Answer(response.status, _retry_after(response.getheader("Retry-After"), self._clock()))


def tls() -> ssl.SSLContext:
    """Certificates and names are verified, against what the system trusts."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _head(target: Target, headers: Mapping[str, str], length: int) -> bytes:
    fields = {"Host": target.authority, **headers, "Content-Length": str(length), "Connection": "close"}
    for name, value in fields.items():
        if not _HEADER.fullmatch(value):
            raise ValueError(f"{name}: not a header's value; use printable ASCII")
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {target.path_and_query} HTTP/1.1\r\n{lines}\r\n".encode("ascii")


def _send(sock: socket.socket, data: bytes, deadline: Deadline) -> None:
    """Piece by piece, as `sendall` of a TLS socket has a time-out for each piece alone."""
    rest = memoryview(data)
    # Who answers before it has read everything (413, 410) may close on us: its answer is there to be read.
    with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
        while rest:
            sock.settimeout(deadline.left())
            rest = rest[sock.send(rest[:65536]) :]


def _retry_after(text: str | None, now: float) -> float | None:
    """Seconds; the header has them, or a date."""
    if text is None:
        return None
    if _SECONDS.fullmatch(text.strip(" ")):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _reason(error: OSError | HTTPException) -> str:
    """For people; never what the other side wrote, which may echo the URL."""
    match error:
        case TimeoutError():
            return "did not answer in time"
        case ssl.SSLCertVerificationError():
            return f"has a certificate that does not hold: {error.verify_message}"
        case ssl.SSLError():
            return f"cannot be spoken to by TLS: {error.reason}"
        case OSError():
            return f"cannot be reached or broke off: {error.strerror or type(error).__name__}"
        case _:
            return f"gave no usable HTTP answer ({type(error).__name__})"
