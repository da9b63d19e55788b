"""The emulator behind the simulators: requests handed on to it, and the stage's own HTTP API."""

import json
import threading
from http import HTTPStatus

import urllib3

from mailroom_local.aws import STAGE, authorization
from mailroom_local.providers.http import Reply, Request, json_reply

# Headers that belong to one connection, or that the client or the server of the next connection sets again.
HOP_BY_HOP = {
    *("connection", "keep-alive", "transfer-encoding", "content-length", "host", "date", "server"),
    *("origin", "sec-fetch-site"),  # about the page's request to this server, which has checked them
}
TIMEOUT_SECONDS = 60.0
CONNECTIONS = 50
"""Connections that stay open; more may be in use."""
API_NAME = f"mailroom-{STAGE}"


class Upstream:
    """The emulator, over a pool of connections that stay open."""

    def __init__(self, url: str) -> None:
        # The emulator closes idle connections, so a request may have to be sent again. If the emulator
        # records such a request twice, that does no harm: the simulators' own inbox decides which message was
        # sent. A response with Retry-After is the stage's own, and goes on to its client.
        once_more = urllib3.Retry(1, allowed_methods=None, respect_retry_after_header=False)
        self._pool = urllib3.connection_from_url(
            url, maxsize=CONNECTIONS, timeout=TIMEOUT_SECONDS, retries=once_more
        )

    def pass_on(self, request: Request) -> Reply:
        """Send the request as it came and return the response as it came. Raises urllib3's HTTPError."""
        headers = {name: value for name, value in request.headers.items() if name not in HOP_BY_HOP}
        response = self._pool.urlopen(
            request.method,
            request.path,
            body=request.body or None,
            headers=headers,
            redirect=False,
            decode_content=False,
        )
        passed = {name: value for name, value in response.headers.items() if name.lower() not in HOP_BY_HOP}
        return Reply(response.status, response.data, passed)

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()


class PublicApi:
    """The stage's HTTP API under a URL that a browser can open: http://127.0.0.1:PORT/api.

    API Gateway gives an API a name; the emulator gives it a path that is too long for a mail. Safe for many
    threads.
    """

    prefix = "/api"

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._base = ""
        self._lock = threading.Lock()

    def handle(self, request: Request) -> Reply:
        with self._lock:
            self._base = self._base or self._found()
        if not self._base:
            return json_reply(HTTPStatus.SERVICE_UNAVAILABLE, {"message": f"There is no API {API_NAME} yet."})
        path = self._base + (request.path.removeprefix(self.prefix) or "/")
        return self._upstream.pass_on(Request(request.method, path, request.headers, request.body))

    def _found(self) -> str:
        """Path of the API in the emulator; empty before the stacks are deployed."""
        signed = {"authorization": authorization("apigateway")}
        listed = json.loads(self._upstream.pass_on(Request("GET", "/v2/apis", signed, b"")).body)
        ids = [api["apiId"] for api in listed.get("items", []) if api["name"] == API_NAME]
        return f"/restapis/{ids[0]}/$default/_user_request_" if ids else ""
