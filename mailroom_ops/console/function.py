"""The team's console as a Lambda function behind an HTTP API: events become requests of the application."""

import asyncio
import base64
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import botocore.session

from mailroom.aws.secret import CachedSecret
from mailroom.environment import ConsoleSettings
from mailroom_ops.console.guard import REFUSED
from mailroom_ops.console.open_id import OpenId, Roles, client_secret
from mailroom_ops.console.sessions import Sessions
from mailroom_ops.console.site import Site
from mailroom_ops.console.team import CALLBACK, Team
from mailroom_ops.shared.deployed_stage import name

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Scope

ANSWER_SECONDS = 20.0
"""Seconds after which a page is given up: API Gateway would give up after 30, without a sentence."""
MAX_BODY = 4_000_000
"""Maximum body of a response, in bytes. Lambda's limit is 6 MB for the response as JSON, with its escapes."""
_TOO_LONG = (
    "The page takes over 20 seconds, or is too large. Choose a shorter time or more filters, or use the "
    "command mailroom messages list on a machine with rights."
)


class _Session:
    """Session of botocore in place of boto3's, whose further modules would lengthen each cold start."""

    def __init__(self) -> None:
        self._session = botocore.session.get_session()

    def client(self, service: str, **options: Any) -> Any:
        """Return a new client."""
        return self._session.create_client(service, **options)


def handler_of(settings: ConsoleSettings, stage: str) -> Callable[[dict[str, Any], object], dict[str, Any]]:
    """Return the function that handles an event of the HTTP API."""
    session = _Session()
    secret = CachedSecret(session.client("secretsmanager"), settings.client_secret_arn, time.time)
    app, pool = team_of(settings, stage, session, partial(client_secret, secret)), ThreadPoolExecutor()

    def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
        try:
            return pool.submit(asyncio.run, answer(app, event)).result(ANSWER_SECONDS)
        except TimeoutError:
            return _given_up()

    return handle


def team_of(settings: ConsoleSettings, stage: str, session: Any, secret: Callable[[], str]) -> Team:
    """Return the console with these settings. `secret` returns the client's secret, or an empty text if the
    client has none."""
    site, redirect = Site(session, stage), f"{settings.console_url}{CALLBACK}"
    open_id = OpenId(settings.issuer, settings.client_id, redirect, secret, settings.scope)
    roles = Roles(settings.claim, settings.read, settings.contents)
    sessions = Sessions(site.client("dynamodb"), name(stage, "deeds"), f"{settings}", time.time)
    return Team(site, settings.console_url, open_id, roles, sessions)


async def answer(app: "ASGIApp", event: dict[str, Any]) -> dict[str, Any]:
    """Return the application's response to an event of an HTTP API (payload format 2.0)."""
    body = event.get("body") or ""
    octets = base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
    messages: list[Message] = []
    requests: list[Message] = [{"type": "http.request", "body": octets}]

    async def receive() -> "Message":
        if not requests:
            await asyncio.Event().wait()  # the browser stays connected
        return requests.pop()

    async def send(message: "Message") -> None:
        messages.append(message)

    await app(_scope(event, len(octets)), receive, send)
    content = b"".join(message.get("body", b"") for message in messages[1:])
    if len(content) > MAX_BODY:
        return _given_up()
    headers = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in messages[0]["headers"]]
    return {
        "statusCode": messages[0]["status"],
        "headers": {key: value for key, value in headers if key != "set-cookie"},
        "cookies": [value for key, value in headers if key == "set-cookie"],
        "body": base64.b64encode(content).decode(),
        "isBase64Encoded": True,
    }


def _scope(event: dict[str, Any], length: int) -> "Scope":
    # API Gateway writes the names of headers in lower case, and takes the cookies out of them. The body is
    # here as a whole, whatever its headers say.
    cookies = "; ".join(event.get("cookies", []))
    headers = {**event["headers"], "cookie": cookies, "content-length": f"{length}"}
    headers.pop("transfer-encoding", None)
    path = unquote(event["rawPath"])
    return {
        "type": "http",
        "http_version": "1.1",
        "method": event["requestContext"]["http"]["method"],
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": event.get("rawQueryString", "").encode(),
        "headers": [
            (key.lower().encode(), value.encode("latin-1", "replace")) for key, value in headers.items()
        ],
    }


def _given_up() -> dict[str, Any]:
    body = REFUSED.format(why=_TOO_LONG, remedy='<a href="/">To the overview</a>')
    return {"statusCode": 503, "headers": {"content-type": "text/html; charset=utf-8"}, "body": body}
