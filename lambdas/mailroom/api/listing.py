"""Messages listed: somebody's, or the newest."""

from collections.abc import Mapping
from http import HTTPStatus

from mailroom.api.answers import JSON, ApiError, Response, response
from mailroom.api.requests import href_of
from mailroom.errors import Invalid
from mailroom.message.message import encode
from mailroom.search.finder import Filter, Finder, FoundPage

MAX_RECIPIENT = 2048
"""Characters: as many as a ledger's item keeps of a recipient that is wrong."""
PARAMETERS = ("recipient", "event_type", "status", "template", "campaign", "cursor")


def page_of(finder: Finder | None, query: Mapping[str, str]) -> FoundPage:
    """Return a page of messages, the newest first; `finder` is None without search. Raises ApiError:
    404 without search, 422 a parameter is wrong."""
    if finder is None:
        raise ApiError(
            HTTPStatus.NOT_FOUND, "this stage has no search: name a message by its id, or set search true"
        )
    for name in query:
        if name not in PARAMETERS:
            raise ApiError.of_field(name[:60], f"is no parameter; use {', '.join(PARAMETERS)}, or id alone")
    recipient, cursor = query.get("recipient", ""), query.get("cursor", "")
    wanted = Filter(*(query.get(name, "") for name in Filter.__struct_fields__))
    if "recipient" in query and not 0 < len(recipient.strip()) <= MAX_RECIPIENT:
        raise ApiError.of_field(
            "recipient", f"is empty, or has over {MAX_RECIPIENT} characters; give an address or a number"
        )
    try:
        if recipient:
            return finder.to(recipient, wanted, cursor)
        return finder.newest(wanted, cursor)
    except Invalid as fault:
        raise ApiError.of_field(fault.field, fault.problem) from None


_LISTED = ("id", "event_type", "status", "template", "subject", "to", "updated_at")
"""Attributes of a message that lists have."""


def of_page(page: FoundPage) -> Response:
    """The answer that lists messages; without what is not known of each."""
    listed = [
        {
            **{name: getattr(message, name) for name in _LISTED},
            "put_at": message.times.get("putAt"),
            "href": href_of(message.id, message.event_type),
        }
        for message in page.messages
    ]
    messages = [{name: value for name, value in each.items() if value is not None} for each in listed]
    more = {"cursor": page.cursor, "looked_back_to": page.looked_back_to} if page.cursor else {}
    return response(HTTPStatus.OK, JSON, encode({"messages": messages, **more}))
