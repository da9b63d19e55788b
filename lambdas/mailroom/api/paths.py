"""Ids in paths: they may hold anything, and what becomes of it on the way is not the same everywhere.

An HTTP API hands its function a path that is decoded already, all but `%25`, where a function URL hands it on
as it was. It decodes before it looks for the route, so an encoded slash ends the id, and cuts the path at a
decoded question mark. Ids with those characters are therefore named by the query instead.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

_MESSAGE = re.compile(r"(?P<before>.*?/messages/)(?P<id>.+)", re.DOTALL)
_CANCEL = "/cancel"
_UNSAFE = re.compile(r".*[/?%\\].*|\.{1,2}", re.DOTALL)
"""What does not come through in a path, or means another one."""


def routable(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event with its id percent-encoded once, however it came, so that a route can match it."""
    path = _MESSAGE.fullmatch(event["rawPath"])
    if path is None:
        return {**event}
    id_, ending = path["id"], ""
    if event["requestContext"]["http"]["method"].upper() == "POST" and id_.endswith(_CANCEL):
        id_, ending = id_.removesuffix(_CANCEL), _CANCEL
    return {**event, "rawPath": path["before"] + quote(unquote(id_), safe="", errors="replace") + ending}


def href_of(id_: str, event_type: str) -> str:
    """Where a message's status is, below the API's URL."""
    channel = f"event_type={quote(event_type, safe='')}"
    if _UNSAFE.fullmatch(id_):
        return f"/messages?id={quote(id_, safe='')}&{channel}"
    return f"/messages/{quote(id_, safe='')}?{channel}"
