"""The stage's HTTP API under a URL that a browser can open: http://127.0.0.1:PORT/api.

API Gateway would have a name of its own for it; the emulator has a path that nobody wants in a mail. What
comes here goes there as it is, but for the path, and comes to the function as API Gateway hands it over.
"""

import json
import threading
from http import HTTPStatus

from local.aws import STAGE
from local.providers.fax_wire import json_reply
from local.providers.http import Reply, Request
from local.providers.upstream import Upstream

PREFIX = "/api"
NAME = f"mailroom-{STAGE}"
_APIS = Request("GET", "/v2/apis", {}, b"")


def path_of(api_id: str) -> str:
    """Where the emulator has an HTTP API."""
    return f"/restapis/{api_id}/$default/_user_request_"


class PublicApi:
    """Everything under /api; safe for many threads."""

    prefix = PREFIX

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._found = ""
        self._lock = threading.Lock()

    def handle(self, request: Request) -> Reply:
        base = self._base()
        if not base:
            return json_reply(HTTPStatus.SERVICE_UNAVAILABLE, {"message": f"There is no API {NAME} yet."})
        path = base + (request.path.removeprefix(PREFIX) or "/")
        return self._upstream.pass_on(Request(request.method, path, request.headers, request.body))

    def _base(self) -> str:
        """Known once the stacks are deployed."""
        with self._lock:
            if not self._found:
                listed = json.loads(self._upstream.pass_on(_APIS).body).get("items", [])
                self._found = next((path_of(each["apiId"]) for each in listed if each["name"] == NAME), "")
            return self._found
