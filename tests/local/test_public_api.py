"""The stage's own API below /api: it is found by its name, and gets the unchanged request."""

import json
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

from mailroom_local.providers.http import Reply, Request
from mailroom_local.providers.upstream import PublicApi, Upstream

OTHER = {"apiId": "other", "name": "mailroom-dev"}
OURS = {"apiId": "a1b2", "name": "mailroom-local"}
BASE = "/restapis/a1b2/$default/_user_request_"


class FakeUpstream:
    """The emulator: lists its APIs, and says what it was asked."""

    def __init__(self, *apis: dict[str, Any]) -> None:
        self.apis = list(apis)
        self.asked: list[Request] = []

    def pass_on(self, request: Request) -> Reply:
        if request.path == "/v2/apis":
            return Reply(200, json.dumps({"items": self.apis}).encode())
        self.asked.append(request)
        return Reply(202, b"taken", {"X-Own": "1"})


def public_api(upstream: FakeUpstream) -> PublicApi:
    return PublicApi(upstream)  # type: ignore[arg-type]


def test_the_public_api_passes_a_request_on_to_the_stages_api_and_changes_only_its_path() -> None:
    upstream = FakeUpstream(OTHER, OURS)
    request = Request("POST", "/api/unsubscribe/a%2Fb.c?x=1", {"content-type": "text/plain"}, b"body")
    reply = public_api(upstream).handle(request)
    assert (reply.status, reply.body, reply.headers) == (202, b"taken", {"X-Own": "1"})
    expected = Request("POST", f"{BASE}/unsubscribe/a%2Fb.c?x=1", {"content-type": "text/plain"}, b"body")
    assert upstream.asked == [expected]


def test_the_public_api_passes_a_request_without_a_further_path_on_to_the_stages_root() -> None:
    upstream = FakeUpstream(OURS)
    public_api(upstream).handle(Request("GET", "/api", {}, b""))
    assert upstream.asked[0].path == f"{BASE}/"


def test_the_public_api_of_the_local_stage_answers_503_until_the_stacks_are_deployed() -> None:
    upstream = FakeUpstream(OTHER)
    proxy = public_api(upstream)
    assert proxy.handle(Request("GET", "/api/messages/1", {}, b"")).status == 503
    upstream.apis.append(OURS)
    assert proxy.handle(Request("GET", "/api/messages/1", {}, b"")).status == 202


def test_the_public_api_returns_a_response_with_retry_after_without_a_second_request() -> None:
    paths = list[str]()

    class Throttled(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.send_response(429)
            self.send_header("Retry-After", "1")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print no log lines."""

    with HTTPServer(("127.0.0.1", 0), Throttled) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with closing(Upstream(f"http://127.0.0.1:{server.server_port}")) as upstream:
            reply = upstream.pass_on(Request("POST", "/messages", {}, b"{}"))
        server.shutdown()
    assert (reply.status, paths) == (429, ["/messages"])
