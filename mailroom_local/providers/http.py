"""Parts that all simulators share: requests, replies, and the HTTP server that runs them.

This module imports only the standard library, because the emulator's own Python imports it too.
"""

import base64
import binascii
import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import responses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Protocol
from urllib.parse import parse_qs, urlsplit

E164 = re.compile(r"\+[1-9]\d{6,14}")
MAX_REQUESTS = 1_000
"""Maximum number of requests that this process handles at the same time."""
PLACES = threading.Semaphore(MAX_REQUESTS)


@dataclass(frozen=True)
class Request:
    """An HTTP request with its complete body. Header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def route(self) -> str:
        """Path without the query string and without a slash at the end."""
        return urlsplit(self.path).path.rstrip("/")

    @property
    def query(self) -> dict[str, str]:
        """Parameters of the query string. If several have the same name, the last is used."""
        return _last(urlsplit(self.path).query)

    def count(self, name: str, default: int) -> int:
        """Return a parameter of the query string that is a count. Raises ValueError."""
        text = self.query.get(name, str(default))
        if not text.isdecimal():
            raise ValueError(f"{name}: must be a count, such as 7.")
        return int(text)

    @property
    def form(self) -> dict[str, str]:
        """Fields of a posted form. If several have the same name, the last is used."""
        return _last(self.body.decode())

    @property
    def bearer(self) -> str:
        """Token of an `Authorization: Bearer` header, or an empty string without such a header."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token if scheme.lower() == "bearer" else ""

    @property
    def login(self) -> tuple[str, str] | None:
        """User and password of an `Authorization: Basic` header, or None without a valid header."""
        scheme, _, coded = self.headers.get("authorization", "").partition(" ")
        try:
            user, _, password = base64.b64decode(coded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return (user, password) if scheme.lower() == "basic" else None


@dataclass(frozen=True)
class Reply:
    """An HTTP response with its complete body."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class NoAnswer(Exception):
    """The provider has processed the request, but the connection breaks before the client gets the
    response."""


class SubmitRefused(Exception):
    """A simulated network refuses a message. `why` is the reason, one of the values in the network's
    tables."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Occurrences:
    """Counts how often each key has occurred, for outcomes that occur only the first time. Thread-safe."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    def nth(self, key: Hashable) -> int:
        """Count an occurrence of `key`, and return its number, 1 for the first."""
        with self._lock:
            self._counts[key] += 1
            return self._counts[key]

    def chosen(self, addresses: Iterable[str], domain: str, fine: str) -> str:
        """Return the outcome that the first address at `domain` names in its local part, before a plus label.
        An outcome with the suffix `-once` applies only the first time. After that, and without an address
        that names an outcome, return `fine`."""
        for address in map(str.lower, addresses):
            local, _, host = address.partition("@")
            if host == domain:
                name = local.partition("+")[0]
                outcome = name.removesuffix("-once")
                return outcome if outcome == name or self.nth(address) == 1 else fine
        return fine


class Simulator(Protocol):
    """A simulated provider. `server.py` lists all simulators, and has an example."""

    prefix: str

    def handle(self, request: Request) -> Reply:
        """Return the response to a request whose path starts with `prefix`. Raises NoAnswer to break the
        connection."""


class Pages:
    """Pages with information about a simulator, for tests and the demo. They return JSON, by method and path,
    such as `GET /inbox`.

    A page's function returns the content, or None for an empty response. If it raises ValueError, the
    response is 400.
    """

    def __init__(self, prefix: str, pages: Mapping[str, Callable[[Request], Any]]) -> None:
        self.prefix = prefix
        self._page_of, self._paths = pages.get, ", ".join(pages)

    def handle(self, request: Request) -> Reply:
        page = self._page_of(f"{request.method} {request.route}")
        if page is None:
            return json_reply(HTTPStatus.NOT_FOUND, {"message": f"Try {self._paths}."})
        try:
            content = page(request)
        except ValueError as error:
            return json_reply(HTTPStatus.BAD_REQUEST, {"message": str(error)})
        return Reply(HTTPStatus.NO_CONTENT, b"") if content is None else json_reply(HTTPStatus.OK, content)


class Handler(BaseHTTPRequestHandler):
    """Handler of a connection that stays open for several requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    simulators: ClassVar[Sequence[Simulator]] = ()

    def answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, self.rfile.read(length))
        try:
            with PLACES:
                self._write(self._reply(request))
        except NoAnswer:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):  # the base class looks for do_GET, do_POST and so on
            return self.answer
        raise AttributeError(name)

    def _reply(self, request: Request) -> Reply:
        host, port, *_ = self.connection.getsockname()
        if not is_meant(request.headers, f"{host}:{port}"):
            return json_reply(HTTPStatus.FORBIDDEN, {"message": "Requests from other sites are refused."})
        for simulator in self.simulators:
            if request.path.startswith(simulator.prefix):
                return simulator.handle(request)
        if request.path == "/health":
            return json_reply(HTTPStatus.OK, {"status": "ok"})
        return json_reply(HTTPStatus.NOT_FOUND, {"message": "No simulated provider has this path."})

    def _write(self, reply: Reply) -> None:
        """Write the response in one packet: a separate head would wait for the client's delayed ACK."""
        head = f"HTTP/1.1 {reply.status} {responses.get(reply.status, '')}\r\n"
        fields = {**reply.headers, "Content-Length": str(len(reply.body))}
        head += "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.wfile.write(head.encode("latin-1") + b"\r\n" + reply.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Log nothing: writing a line for each request would cost more than the request."""


class SimulatorServer(ThreadingHTTPServer):
    """HTTP server of simulators on the loopback address; port 0 chooses a free port. It refuses requests from
    web pages of other sites."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, *simulators: Simulator) -> None:
        super().__init__(("127.0.0.1", port), type("LocalHandler", (Handler,), {"simulators": simulators}))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


def is_meant(headers: Mapping[str, str], address: str) -> bool:
    """Return whether a request is meant for the server at `address`, which includes the port, and was not
    made by a web page of another site.

    Any web page can post to any port of this machine, and the name of a page's host may resolve to this
    machine after the page was loaded (DNS rebinding). Browsers reveal both by headers that pages cannot set.
    Other programs send only the header `Host`.
    """
    if headers.get("host") != address:
        return False
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if site is None:
        return origin in (None, f"http://{address}")
    # A page of this server with the referrer policy no-referrer, such as the unsubscribe page, sends the
    # origin `null`.
    return site in ("same-origin", "none") and origin in (None, f"http://{address}", "null")


def json_reply(status: int, value: Any, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})


def iso(seconds: float) -> str:
    """Return epoch seconds as text, such as 2026-11-21T09:00:00Z."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def iso_milliseconds(moment: datetime) -> str:
    """Return a time in UTC as text, such as 2026-11-21T09:00:00.250Z."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def epoch(text: str) -> float:
    """Return the epoch seconds of an ISO 8601 time, which is in UTC unless it has an offset. Raises
    ValueError."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def number_ending(number: str) -> str:
    """Return the two digits that determine the outcome of a simulated number: xx of 555 01xx; empty for other
    numbers."""
    ending = re.search(r"55501(\d\d)$", number)
    return ending[1] if ending else ""


def _last(text: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(text, keep_blank_values=True).items()}
