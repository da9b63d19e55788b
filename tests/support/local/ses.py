"""A stand-in for the emulator's SES: takes mails, refuses an unverified sender, knows one set."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Emulator(ThreadingHTTPServer):
    """Takes every mail but those from an unverified sender, and knows one configuration set."""

    daemon_threads = True

    def __init__(self) -> None:
        self.mails: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), EmulatorHandler)


class EmulatorHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Emulator

    def do_GET(self) -> None:
        self._answer(200 if self.path.endswith("/known") else 404, {"message": "?"}, "NotFoundException")

    def do_POST(self) -> None:
        mail = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "mailroom@" not in mail["FromEmailAddress"]:
            self._answer(400, {"message": "Email address is not verified."}, "MessageRejected")
            return
        self.server.mails.append(mail)
        self._answer(200, {"MessageId": f"id-{len(self.server.mails)}"})

    def _answer(self, status: int, body: dict[str, str], code: str = "") -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if status != 200:
            self.send_header("x-amzn-errortype", code)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass
