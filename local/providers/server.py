"""The server of all provider simulators: each has its paths; `/inbox` shows what they accepted, and below
`/api` is the stage's own HTTP API.

`python -m local.providers.server --port N --emulator URL` runs it; `up` and `demo` start it so.
"""

import argparse
import json
import socket
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.client import responses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from local.providers.delay_queue import Later
from local.providers.fax import FaxLine, FaxPages
from local.providers.feedback_pages import FeedbackPages
from local.providers.http import NoAnswer, Provider, Reply, Request, is_meant
from local.providers.inbox import InboxStore
from local.providers.public_api import PublicApi
from local.providers.ses import SesSimulator
from local.providers.ses_feedback import SesFeedback
from local.providers.ses_suppression import SuppressionList
from local.providers.signalwire import SignalWireSimulator
from local.providers.sms import SmsNetwork
from local.providers.sns import SnsSimulator
from local.providers.telnyx import TelnyxSimulator
from local.providers.twilio import TwilioSimulator
from local.providers.twilio_callbacks import TwilioCallbacks
from local.providers.upstream import Upstream
from local.providers.webhook_receiver import WebhookReceiver

SLOW_FAX_SECONDS = 9.0
"""Longer than a function of the local stage lives: a slow fax takes several of them."""


class InboxPages:
    """GET /inbox, GET /inbox?after=COUNT (without the first so many), GET /inbox/count, DELETE /inbox."""

    prefix = "/inbox"

    def __init__(self, inbox: InboxStore) -> None:
        self._inbox = inbox

    def handle(self, request: Request) -> Reply:
        match request.method, request.path.partition("?")[0].rstrip("/"):
            case "GET", "/inbox":
                after = parse_qs(urlsplit(request.path).query, True).get("after", ["0"])[0]
                if not after.isdecimal():
                    return Reply(HTTPStatus.BAD_REQUEST, b'{"message": "after: give a count, such as 7."}')
                return _json([each.as_json() for each in self._inbox.all()[int(after) :]])
            case "GET", "/inbox/count":
                return _json({"count": len(self._inbox)})
            case "DELETE", "/inbox":
                self._inbox.clear()
                return Reply(HTTPStatus.NO_CONTENT, b"")
        return Reply(HTTPStatus.NOT_FOUND, b'{"message": "Try GET /inbox, GET /inbox/count, DELETE /inbox."}')


class Handler(BaseHTTPRequestHandler):
    """One connection, kept open over many requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    providers: ClassVar[Sequence[Provider]] = ()

    def answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, self.rfile.read(length))
        try:
            self._write(self._reply(request))
        except NoAnswer:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):  # the base class looks for do_GET, do_POST and so on: all go one way
            return self.answer
        raise AttributeError(name)

    def _reply(self, request: Request) -> Reply:
        host, port, *_ = self.connection.getsockname()
        if not is_meant(request.headers, f"{host}:{port}"):
            return Reply(HTTPStatus.FORBIDDEN, b'{"message": "A web page of somebody else asks for this."}')
        for provider in self.providers:
            if request.path.startswith(provider.prefix):
                return provider.handle(request)
        if request.path == "/health":
            return _json({"status": "ok"})
        return Reply(HTTPStatus.NOT_FOUND, b'{"message": "No simulated provider has this path."}')

    def _write(self, reply: Reply) -> None:
        """One write, so one packet: a head sent alone would wait for the client's delayed ACK."""
        head = f"HTTP/1.1 {reply.status} {responses.get(reply.status, '')}\r\n"
        fields = {**reply.headers, "Content-Length": str(len(reply.body))}
        head += "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.wfile.write(head.encode("latin-1") + b"\r\n" + reply.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Nothing: a line per request would cost more than the request."""


def _json(value: Any) -> Reply:
    return Reply(HTTPStatus.OK, json.dumps(value).encode(), {"Content-Type": "application/json"})


class ProviderServer(ThreadingHTTPServer):
    """Listens on the loopback address alone; port 0 takes a free one. Web pages of others are refused."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, emulator_url: str) -> None:
        inbox = InboxStore()
        self._upstream = Upstream(emulator_url)
        line = FaxLine(inbox, slow_seconds=SLOW_FAX_SECONDS)
        suppressed = SuppressionList()
        feedback = SesFeedback(self._upstream, suppressed)
        callbacks = TwilioCallbacks(emulator_url)
        laters: dict[str, Later[Any]] = {"ses": feedback.later, "twilio": callbacks.later}
        for later in laters.values():
            later.start()
        providers: tuple[Provider, ...] = (
            SesSimulator(inbox, self._upstream, suppressed, feedback),
            SnsSimulator(inbox, self._upstream),
            TwilioSimulator(SmsNetwork(inbox), callbacks.accepted),
            callbacks,
            FeedbackPages(laters, feedback.counts),
            SignalWireSimulator(line),
            TelnyxSimulator(line),
            FaxPages(line),
            WebhookReceiver(),
            InboxPages(inbox),
            PublicApi(self._upstream),
        )
        super().__init__(("127.0.0.1", port), type("LocalHandler", (Handler,), {"providers": providers}))

    def server_close(self) -> None:
        super().server_close()
        self._upstream.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    parser.add_argument("--emulator", required=True, help="URL of the emulator")
    options = parser.parse_args()
    ProviderServer(options.port, options.emulator).serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main()
