"""A real HTTP server on the loopback address that responds by a script and records its requests."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Request:
    """A request. Its header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def form(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """A response; a `body` is sent as JSON, unless it is bytes."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """Break the connection in the middle of the body."""
    halfway: Callable[[], object] = lambda: None
    """Function to call after half of the body."""


class Silence:
    """Step that reads the request and never responds."""


class Break:
    """Step that reads the request and closes the connection."""


Step = Answer | Silence | Break | Callable[[], None]
"""Step of a script. A callable is called before an empty response 200."""


class ScriptedServer(ThreadingHTTPServer):
    """A server that responds by the script, and repeats its last step."""

    daemon_threads = True

    def __init__(self, script: Sequence[Step]) -> None:
        self.script = list(script)
        self.requests: list[Request] = []
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def step(self) -> Step:
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedServer

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(Request(self.command, self.path, headers, self.rfile.read(length)))
        match self.server.step():
            case Silence():
                self.server.over.wait(10)
                self.close_connection = True
            case Break():
                self.close_connection = True
            case Answer() as answer:
                self._write(answer)
            case call:
                call()
                self._write(Answer())

    do_GET = do_POST  # noqa: N815 - the base class names them so

    def _write(self, answer: Answer) -> None:
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        half = len(body) // 2
        self.wfile.write(body[:half])
        answer.halfway()
        if answer.cut:
            self.close_connection = True
        else:
            self.wfile.write(body[half:])

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        pass


@contextmanager
def scripted(*script: Step) -> Iterator[ScriptedServer]:
    """Run the server."""
    server = ScriptedServer(script)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


def closed() -> str:
    """Return the URL of a port without a listener."""
    with scripted(Answer()) as server:
        return server.url


def error_of_twilio(code: object, message: str = "no", status: int = 400) -> Answer:
    """Return an error in the form of Twilio, which SignalWire has too."""
    return Answer(status, {"code": code, "message": message, "more_info": "", "status": status})
