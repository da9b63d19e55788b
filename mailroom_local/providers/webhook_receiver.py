"""Receiver of webhooks, which stores each request unchanged. The path determines the response.

| path under /receiver/   | response                                                              |
|-------------------------|-----------------------------------------------------------------------|
| ok                      | 200                                                                   |
| fail/<status>           | the given status                                                      |
| flaky/<n>               | 503 the first n times for each webhook-id, then 200                   |
| slow/<seconds>          | 200 after the given time                                              |
| gone                    | 410                                                                   |
| redirect                | 302 to /receiver/ok/redirected                                        |
| retry-after/<seconds>   | 429 with Retry-After the first time for each webhook-id, then 200     |
| drop                    | none: the request is stored, then the connection is broken            |

Further parts of the path can distinguish requests (`ok/orders/7`). GET /receiver/received lists the requests,
oldest first (with ?last=COUNT only the newest), and GET /receiver/count returns their number. The receiver
does not verify signatures. The reader of the list can verify them with the key of the receiver's host.
"""

import base64
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mailroom_local.providers.http import NoAnswer, Occurrences, Reply, Request, iso_milliseconds, json_reply

_HELP = b'{"message": "Try POST /receiver/ok; other paths: mailroom_local/providers/webhook_receiver.py."}'
ALWAYS = {
    "ok": Reply(200, b""),
    "gone": Reply(410, b""),
    "redirect": Reply(302, b"", {"Location": "/receiver/ok/redirected"}),
}


class WebhookReceiver:
    """Simulator of the routes under /receiver."""

    prefix = "/receiver"

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep = sleep
        self._received: list[dict[str, Any]] = []
        self._had = Occurrences()
        self._lock = threading.Lock()

    def handle(self, request: Request) -> Reply:
        path = request.route
        match request.method, path:
            case "GET", "/receiver/received":
                first = -int(request.query.get("last", 0))
                with self._lock:
                    return json_reply(200, self._received[first:])
            case "GET", "/receiver/count":
                return json_reply(200, {"count": len(self._received)})
            case "POST", _:
                return self._answer(path.split("/")[2:], self._keep(path, request))
        return Reply(404, _HELP)

    def _keep(self, path: str, request: Request) -> int:
        """Store the request. Return how often the same webhook-id was received at this path before."""
        entry = {
            "received_at": iso_milliseconds(datetime.now(UTC)),
            "method": request.method,
            "path": request.path,
            "headers": dict(request.headers),
            **_body(request.body),
        }
        with self._lock:
            self._received.append(entry)
        return self._had.nth((request.headers.get("webhook-id", ""), path)) - 1

    def _answer(self, parts: list[str], before: int) -> Reply:
        match parts:
            case ["slow", seconds, *_] if seconds.replace(".", "", 1).isdecimal():
                self._sleep(float(seconds))
                return Reply(200, b"")
            case ["drop", *_]:
                raise NoAnswer
            case ["flaky", times, *_] if times.isdecimal():
                return Reply(503 if before < int(times) else 200, b"")
            case ["retry-after", seconds, *_] if seconds.isdecimal():
                return Reply(200, b"") if before else Reply(429, b"", {"Retry-After": seconds})
            case ["fail", status, *_] if status.isdecimal() and 200 <= int(status) <= 599:
                return Reply(int(status), b"")
            case [name, *_] if name in ALWAYS:
                return ALWAYS[name]
        return Reply(404, _HELP)


def _body(content: bytes) -> dict[str, str]:
    """Return the body as text, or as base64 if it is not UTF-8 text."""
    try:
        return {"body": content.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(content).decode()}
