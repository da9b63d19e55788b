"""A stand-in for the emulator's SES, with the account, one identity of an address, one of a domain, and one
configuration set."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HAS = ("/identities/mailroom%40example.com", "/identities/example.org", "/configuration-sets/known")
ACCOUNT = "/v2/email/account"


class Emulator(ThreadingHTTPServer):
    """The stand-in; `asked` lists the paths of all requests."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), EmulatorHandler)


class EmulatorHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Emulator

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        found = self.path.endswith((ACCOUNT, *HAS))
        content: dict[str, Any] = {"SendingEnabled": True} if self.path == ACCOUNT else {}
        data = json.dumps(content if found else {"message": "?"}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        """Record the path, so that `asked` lists a mail that the simulator forwards."""
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass
