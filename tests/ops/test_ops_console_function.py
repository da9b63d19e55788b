"""Events of the HTTP API as requests of the console, and its responses as those of a function."""

import asyncio
import base64
import threading
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from mailroom.environment import ConsoleSettings
from mailroom_ops.console import function
from mailroom_ops.console.application import application
from mailroom_ops.console.function import MAX_BODY, answer, handler_of
from mailroom_ops.console.site import Site
from mailroom_ops.console.team import READING

SETTINGS = ConsoleSettings(
    console_url="https://console.example.com",
    issuer="https://sign-in.example.com",
    client_id="mailroom",
    client_secret_arn="arn",
    scope="openid",
    claim="groups",
)


def function_event(path: str, method: str = "GET", **more: Any) -> dict[str, Any]:
    """An event of an HTTP API, as AWS documents it for the payload format 2.0."""
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "console.example.com", "content-length": "0"},
        "requestContext": {"http": {"method": method, "path": path}, "stage": "$default"},
        "isBase64Encoded": False,
        **more,
    }


def echo(body: bytes, *headers: tuple[bytes, bytes]) -> Any:
    """An application with this response. It keeps its scope and the request's body."""
    seen: dict[str, Any] = {}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.update(scope, body=(await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": [*headers]})
        await send({"type": "http.response.body", "body": body})

    vars(app)["seen"] = seen
    return app


def test_an_event_of_api_gateway_becomes_a_request_of_the_console() -> None:
    app = echo(b"")
    form = base64.b64encode(b"q=ada%40example.com").decode()
    more = {"cookies": ["a=1", "b=2"], "rawQueryString": "id=a%2Fb", "body": form, "isBase64Encoded": True}
    more["headers"] = {"host": "console.example.com", "transfer-encoding": "chunked"}
    asyncio.run(answer(app, function_event("/message%20x", "POST", **more)))
    seen = vars(app)["seen"]
    assert (seen["method"], seen["path"], seen["query_string"]) == ("POST", "/message x", b"id=a%2Fb")
    assert dict(seen["headers"])[b"cookie"] == b"a=1; b=2"
    assert seen["body"] == b"q=ada%40example.com"
    assert dict(seen["headers"])[b"content-length"] == b"19"
    assert b"transfer-encoding" not in dict(seen["headers"])


def test_the_function_of_the_console_returns_each_cookie_of_a_response_separately() -> None:
    app = echo(b"Hi", (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"content-type", b"text/html"))
    reply = asyncio.run(answer(app, function_event("/")))
    assert (reply["cookies"], reply["headers"]) == (["a=1", "b=2"], {"content-type": "text/html"})
    assert base64.b64decode(reply["body"]) == b"Hi"


def test_the_function_of_the_teams_console_sends_the_complete_style_sheet() -> None:
    app = application(Site(None, "dev"), "", READING)  # type: ignore[arg-type]
    reply = asyncio.run(asyncio.wait_for(answer(app, function_event("/assets/console.css")), 10))
    assert (reply["statusCode"], reply["headers"]["content-type"]) == (200, "text/css; charset=utf-8")
    assert len(base64.b64decode(reply["body"])) == int(reply["headers"]["content-length"])


def test_a_page_that_is_too_large_is_replaced_by_an_error_page() -> None:
    reply = asyncio.run(answer(echo(b"x" * (MAX_BODY + 1)), function_event("/")))
    assert reply["statusCode"] == 503
    assert "mailroom messages list" in reply["body"]


def test_a_page_that_takes_too_long_is_replaced_by_an_error_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setattr(function, "ANSWER_SECONDS", 0.0)
    released = threading.Event()

    async def late(*_: object) -> None:
        await asyncio.to_thread(released.wait)  # longer than any limit, whatever else the machine does

    monkeypatch.setattr(function, "Team", lambda *_: late)
    try:
        reply = handler_of(SETTINGS, "dev")(function_event("/"), None)
    finally:
        released.set()
    assert reply["statusCode"] == 503
    assert "20 seconds" in reply["body"]


def test_the_handler_of_the_teams_console_offers_to_sign_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    reply = handler_of(SETTINGS, "dev")(function_event("/"), None)
    assert reply["statusCode"] == 403
    assert b"Sign in" in base64.b64decode(reply["body"])
