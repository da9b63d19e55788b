"""A request's path, body and headers, read strictly; what they ask for is judged elsewhere.

Ids in paths may hold anything, and do not arrive everywhere alike. An HTTP API hands its function a path that
is decoded already, all but `%25`; a function URL hands it on as it was. The API decodes before it looks for
the route, so an encoded slash ends the id, and it cuts the path at a decoded question mark. Ids with those
characters are therefore named by the query instead.
"""

import base64
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote

from mailroom.api.answers import ApiError
from mailroom.errors import Malformed
from mailroom.message.message import read

MAX_BODY_BYTES = 5 * 1024 * 1024
"""Lambda takes 6 MB an invocation, in which the body stands as a JSON string."""
MAX_MESSAGES = 1000
KEY_HEADER = "Idempotency-Key"
KEY = r"[!-~](?:[ -~]{0,178}[!-~])?"
"""1 to 180 bytes of printable ASCII."""
_JSON = re.compile(r"application/(?:json|[\w.+-]+\+json)", re.ASCII | re.IGNORECASE)


def entries_of(event: Mapping[str, Any]) -> tuple[list[Any], bool]:
    """The messages that a request asks for, each with an id where the Idempotency-Key gives it one; and
    whether they came as a list.

    Raises ApiError: 400 no JSON object, 413 too large, 415 another type, 422 fields at fault.
    """
    key = header(event, KEY_HEADER)
    if key is not None and not re.fullmatch(KEY, key):
        raise ApiError.of_field(KEY_HEADER, "is not 1 to 180 bytes of printable ASCII; use such a key")
    body = _body(event)
    if "messages" not in body or "event_type" in body:  # a template may well have a variable `messages`
        return [_named_once(body, key)], False
    messages = body["messages"]
    if not isinstance(messages, list):
        raise ApiError.of_field("messages", "is no list; give 1 to 1,000 messages, or send one as the body")
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise ApiError.of_field(
            "messages", f"has {len(messages)} entries; give 1 to {MAX_MESSAGES:,} a request"
        )
    for other in body:
        if other != "messages":
            raise ApiError.of_field(other[:60], "stands beside messages; put it into the messages themselves")
    return [_named(each, key, at) for at, each in enumerate(messages)], True


def _named_once(item: dict[str, Any], key: str | None) -> dict[str, Any]:
    id_ = item.get("id")
    if key is None or id_ == key:
        return item
    if id_ is not None:
        raise ApiError.of_field(
            "id", f"is {id_!r:.200}, but the {KEY_HEADER} is {key!r}; give one, or the same"
        )
    return {**item, "id": key}


def _named(entry: Any, key: str | None, at: int) -> Any:
    if key is None or not isinstance(entry, dict) or entry.get("id") is not None:
        return entry
    return {**entry, "id": f"{key}#{at}"}


def _body(event: Mapping[str, Any]) -> dict[str, Any]:
    kind = (header(event, "Content-Type") or "").partition(";")[0].strip()
    if not _JSON.fullmatch(kind):
        said = f"is {kind[:60]!r}" if kind else "is missing"
        raise ApiError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Type: {said}; send JSON as application/json",
            [("Content-Type", f"{said}; use application/json")],
        )
    content = _content(event)
    if len(content) > MAX_BODY_BYTES:
        raise ApiError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"the body has {len(content)} bytes; send at most {MAX_BODY_BYTES}, in several requests",
        )
    try:
        return read(content.decode())
    except (Malformed, UnicodeDecodeError) as fault:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"{fault}") from None


def _content(event: Mapping[str, Any]) -> bytes:
    body: str = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return body.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except ValueError:  # a character that is no ASCII is none of binascii's errors
        raise ApiError(HTTPStatus.BAD_REQUEST, "the body is not base64, as it is said to be") from None


def header(event: Mapping[str, Any], name: str) -> str | None:
    """A header's value, however its name is written."""
    headers: Mapping[str, str] = event.get("headers") or {}
    return next((value for each, value in headers.items() if each.lower() == name.lower()), None)


_NAMED = re.compile(r"GET /messages/(?P<found>.+)|POST /messages/(?P<cancelled>.+)/cancel", re.DOTALL)
_UNSAFE = re.compile(r".*[/?%\\].*|\.{1,2}", re.DOTALL)
"""What does not come through in a path, or means another one."""


def route_of(event: Mapping[str, Any]) -> tuple[str, str | None]:
    """The route of a request, such as `GET /messages/{id}`, and the id in its path, however it came."""
    asked = f"{event['requestContext']['http']['method'].upper()} {event['rawPath']}"
    named = _NAMED.fullmatch(asked)
    if named is None:
        return asked, None
    route = "GET /messages/{id}" if named["found"] else "POST /messages/{id}/cancel"
    return route, unquote(named["found"] or named["cancelled"])


def href_of(id_: str, event_type: str) -> str:
    """Where a message's status is, below the API's URL."""
    channel = f"event_type={quote(event_type, safe='')}"
    if _UNSAFE.fullmatch(id_):
        return f"/messages?id={quote(id_, safe='')}&{channel}"
    return f"/messages/{quote(id_, safe='')}?{channel}"
