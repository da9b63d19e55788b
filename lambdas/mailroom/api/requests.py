"""Parses the paths and bodies of requests strictly.

Ids may have any characters, but not all of them are safe in paths. An HTTP API decodes a path, except `%25`,
before it calls the function; a function URL does not. The API decodes the path before it selects the route,
so an encoded slash would end the id, and a decoded question mark would cut off the path. So `href_of` puts
ids with such characters into the query.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote

from mailroom.api.answers import ApiError
from mailroom.errors import HttpError, Malformed
from mailroom.http import event as http_event
from mailroom.http.event import HttpRequest
from mailroom.message.message import read

MAX_BODY_BYTES = 5 * 1024 * 1024
"""Maximum number of bytes of a body. Lambda allows 6 MB for an invocation, which contains the body as a JSON
string."""
MAX_MESSAGES = 1000
_JSON = re.compile(r"application/(?:json|[\w.+-]+\+json)", re.ASCII | re.IGNORECASE)


def entries_of(event: Mapping[str, Any]) -> tuple[list[Any], bool]:
    """Return the messages of a request, and whether the body was a list.

    Raises ApiError: 400 if the body is not a JSON object, 413 if it is too large, 415 for another media type,
    422 for invalid fields.
    """
    body = body_of(event)
    if "messages" not in body or "event_type" in body:
        # A body with `event_type` is a single message, and its `messages` is a variable of its template.
        return [body], False
    messages = body["messages"]
    if not isinstance(messages, list):
        raise ApiError.of_field("messages", "is not a list; use 1 to 1,000 messages, or send one as the body")
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise ApiError.of_field(
            "messages", f"has {len(messages)} entries; use 1 to {MAX_MESSAGES:,} in a request"
        )
    for name in body:
        if name != "messages":
            raise ApiError.of_field(name[:60], "is not allowed beside messages; put it into each message")
    return messages, True


def body_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object in the body of a request. Raises ApiError: 400 if the body is not a JSON object,
    413 if it is too large, 415 for another media type."""
    try:
        request = http_event.read(event, HttpRequest)
        kind = request.media_type
        if not _JSON.fullmatch(kind):
            problem = f"is {kind[:60]!r}" if kind else "is missing"
            raise ApiError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                f"Content-Type: {problem}; send JSON as application/json",
                [("Content-Type", f"{problem}; use application/json")],
            )
        return read(request.text(MAX_BODY_BYTES))
    except HttpError as fault:
        limit = f"; send at most {MAX_BODY_BYTES} bytes in one request" if fault.status == 413 else ""
        raise ApiError(HTTPStatus(fault.status), f"{fault}{limit}") from None
    except Malformed as fault:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"{fault}") from None


_WITH_ID = re.compile(r"GET /messages/(?P<found>.+)|POST /messages/(?P<cancelled>.+)/cancel", re.DOTALL)
_UNSAFE = re.compile(r".*[/?%\\].*|\.{1,2}", re.DOTALL)
"""Pattern of ids that would be changed in a path, or that would result in another path."""


def route_of(event: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the route of a request, such as `GET /messages/{id}`, and the id in its path or None."""
    path = f"{event['requestContext']['http']['method'].upper()} {event['rawPath']}"
    match = _WITH_ID.fullmatch(path)
    if match is None:
        return path, None
    route = "GET /messages/{id}" if match["found"] else "POST /messages/{id}/cancel"
    return route, unquote(match["found"] or match["cancelled"])


def href_of(id_: str, event_type: str) -> str:
    """Return the path of a message's status, below the API's URL."""
    channel = f"event_type={quote(event_type, safe='')}"
    if _UNSAFE.fullmatch(id_):
        return f"/messages?id={quote(id_, safe='')}&{channel}"
    return f"/messages/{quote(id_, safe='')}?{channel}"
