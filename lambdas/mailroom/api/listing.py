"""Lists of messages: the messages to a recipient, or the newest messages."""

from collections.abc import Mapping
from http import HTTPStatus

from mailroom.api.answers import JSON, ApiError, Response, response
from mailroom.api.requests import href_of
from mailroom.errors import Invalid
from mailroom.message.message import encode
from mailroom.search.finder import Filter, Finder, FoundPage

MAX_RECIPIENT = 2048
"""Maximum number of characters of a recipient, which is also the maximum that a ledger item stores."""
PARAMETERS = ("recipient", "event_type", "status", "template", "campaign", "cursor")


def page_of(finder: Finder | None, query: Mapping[str, str]) -> FoundPage:
    """Return a page of messages, newest first. Raises ApiError 404 for a stage without search, whose `finder`
    is None, and 422 for an invalid parameter."""
    if finder is None:
        raise ApiError(
            HTTPStatus.NOT_FOUND, "this stage has no search: use the id of a message, or set search to true"
        )
    for name in query:
        if name not in PARAMETERS:
            raise ApiError.of_field(name[:60], f"is not a parameter; use {', '.join(PARAMETERS)}, or only id")
    recipient, cursor = query.get("recipient", ""), query.get("cursor", "")
    filter_ = Filter(*(query.get(name, "") for name in PARAMETERS[1:-1]))
    if "recipient" in query and not 0 < len(recipient.strip()) <= MAX_RECIPIENT:
        raise ApiError.of_field(
            "recipient", f"is empty, or has over {MAX_RECIPIENT} characters; use an address or a number"
        )
    try:
        if recipient:
            return finder.to(recipient, filter_, cursor)
        return finder.newest(filter_, cursor)
    except Invalid as fault:
        raise ApiError.of_field(fault.field, fault.problem) from None


_LISTED = ("id", "event_type", "status", "template", "subject", "to", "updated_at")
"""Attributes of a message in lists."""


def of_page(page: FoundPage) -> Response:
    """Return the 200 response with a list of messages. Attributes without a value are omitted."""
    rows = [
        {
            **{name: getattr(message, name) for name in _LISTED},
            "put_at": message.times.get("putAt"),
            "href": href_of(message.id, message.event_type),
        }
        for message in page.messages
    ]
    messages = [{name: value for name, value in row.items() if value is not None} for row in rows]
    next_page = {"cursor": page.cursor, "looked_back_to": page.looked_back_to} if page.cursor else {}
    return response(HTTPStatus.OK, JSON, encode({"messages": messages, **next_page}))
