"""The emulator behind the simulators: requests that are forwarded to it, and the stage's own HTTP API."""

import json
import threading
from http import HTTPStatus

import urllib3

from mailroom_local.aws import STAGE, authorization
from mailroom_local.providers.http import Reply, Request, json_reply

# Headers that concern a single connection, or that the client or server of the next connection sets itself.
HOP_BY_HOP = {
    *("connection", "keep-alive", "transfer-encoding", "content-length", "host", "date", "server"),
    *("origin", "sec-fetch-site"),  # they concern the request to this server, which has checked them
}
TIMEOUT_SECONDS = 60.0
CONNECTIONS = 50
"""Number of connections that stay open; more may be in use."""
API_NAME = f"mailroom-{STAGE}"


class Upstream:
    """Client of the emulator with a pool of connections that stay open."""

    def __init__(self, url: str) -> None:
        # The emulator closes idle connections, so a request may have to be sent again. It is harmless if the
        # emulator processes such a request twice: only the simulators' own inbox determines which messages
        # were sent. A response with Retry-After is from the stage itself, and is returned to its client.
        once_more = urllib3.Retry(1, allowed_methods=None, respect_retry_after_header=False)
        self._pool = urllib3.connection_from_url(
            url, maxsize=CONNECTIONS, timeout=TIMEOUT_SECONDS, retries=once_more
        )

    def pass_on(self, request: Request) -> Reply:
        """Forward a request unchanged, and return the response unchanged. Raises urllib3's HTTPError."""
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
    """Proxy of the stage's HTTP API under a URL that a browser can open: http://127.0.0.1:PORT/api.

    API Gateway gives an API a host name, but the emulator gives it a path, which is too long for links in
    mails. Thread-safe.
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
        """Return the path of the API in the emulator, or an empty string before the stacks are deployed."""
        signed = {"authorization": authorization("apigateway")}
        listed = json.loads(self._upstream.pass_on(Request("GET", "/v2/apis", signed, b"")).body)
        ids = [api["apiId"] for api in listed.get("items", []) if api["name"] == API_NAME]
        return f"/restapis/{ids[0]}/$default/_user_request_" if ids else ""
