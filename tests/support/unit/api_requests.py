"""Requests as an HTTP API hands them to its function, and the world behind the function."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from mailroom.api.application import Application
from mailroom.environment import MessagesApiSettings
from tests.support.unit.api_answers import Answer, check_described
from tests.support.unit.events import lambda_context
from tests.support.unit.shared import BUCKET, LEDGER, MAILBOX, SEARCH, SEARCH_KEY, TTL, FakeClock

ENVIRONMENT = {
    "LEDGER_TABLE": LEDGER,
    "LEDGER_TTL_SECONDS": str(int(TTL)),
    "PAYLOAD_BUCKET": BUCKET,
    "MAILBOX_TABLE": MAILBOX,
    "PAYLOAD_TTL_SECONDS": str(int(TTL)),
    "LANES": json.dumps(
        {
            "mail": ["normal", "bulk"],
            "sms": ["normal"],
            "push": ["normal"],
            "fax": ["normal"],
            "webhook": ["normal"],
        }
    ),
    "CALLBACK_SCHEMES": '["https"]',
    "CALLBACK_PORTS": "[443]",
}


def api_settings(**changes: Any) -> MessagesApiSettings:
    base: dict[str, Any] = {
        "ledger_table": LEDGER,
        "ledger_ttl_seconds": TTL,
        "payload_bucket": BUCKET,
        "mailbox_table": MAILBOX,
        "payload_ttl_seconds": TTL,
        "lanes": json.loads(ENVIRONMENT["LANES"]),
        "callback_schemes": ["https"],
        "callback_ports": [443],
        "search_table": SEARCH,
        "search_key_name": SEARCH_KEY,
    }
    return MessagesApiSettings(**{**base, **changes})


def decoded_path(path: str) -> str:
    """A path as an HTTP API decodes it: every escape but %25."""
    return re.sub("\0", "%25", unquote(path.replace("%25", "\0")))


def api_event(
    method: str,
    url: str,
    body: str | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    decoded: bool = True,
    authorizer: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Payload format 2.0; bytes come as base64, as an HTTP API does with types that are not text.
    `authorizer` is what API Gateway found out about the caller."""
    parts = urlsplit(url)
    path = decoded_path(parts.path) if decoded else parts.path
    query: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value
    made: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": parts.query,
        "headers": {name.lower(): value for name, value in (headers or {}).items()},
        "requestContext": {
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
            "requestId": "request-1",
            "stage": "$default",
        },
        "isBase64Encoded": isinstance(body, bytes),
    }
    if authorizer is not None:
        made["requestContext"]["authorizer"] = authorizer
    if query:
        made["queryStringParameters"] = query
    if body is not None:
        made["body"] = base64.b64encode(body).decode() if isinstance(body, bytes) else body
    return made


class Api:
    """An API with a clock. Each verb sends one request."""

    def __init__(self, clock: FakeClock, **changes: Any) -> None:
        self.application = Application(api_settings(**changes), clock)

    def ask(self, made: Mapping[str, Any]) -> Answer:
        reply = self.application.answer(made, lambda_context())
        headers = {name.lower(): value for name, value in reply.get("headers", {}).items()}
        body = reply["body"].encode()
        body = base64.b64decode(body) if reply["isBase64Encoded"] else body
        answer = Answer(reply["statusCode"], headers, body.decode())
        check_described(made["requestContext"]["http"]["method"], made["rawPath"], answer)
        return answer

    def post(self, body: Any, **headers: str) -> Answer:
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        said = {"Content-Type": "application/json", **headers}
        return self.ask(api_event("POST", "/messages", text, said))

    def post_as(self, caller: Mapping[str, Any] | None, body: Any) -> Answer:
        """Send a request of a caller with these claims of API Gateway, or with no claims."""
        kind = {"Content-Type": "application/json"}
        return self.ask(api_event("POST", "/messages", json.dumps(body), kind, authorizer=caller))

    def get(self, url: str, **options: Any) -> Answer:
        return self.ask(api_event("GET", url, **options))

    def cancel(self, url: str, **options: Any) -> Answer:
        return self.ask(api_event("POST", url, **options))
