"""A request to the page for opting out: read strictly, and bounded before anything is done with it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mailroom.http import event as http_event
from mailroom.http.event import Refused

MAX_BODY_BYTES = 8 * 1024
"""What mail programs and the page post has some 200."""
MAX_FIELDS = 20

_PARAMETER = r'(?:^|;)\s*{}=(?:"([^"\r\n]*)"|([^\s;"]+))'
_BOUNDARY = re.compile(_PARAMETER.format("boundary"), re.IGNORECASE)
_NAME = re.compile(
    r"^content-disposition:\s*form-data\b[^\r\n]*?" + _PARAMETER.format("name"), re.IGNORECASE | re.MULTILINE
)


class Request(http_event.Request, frozen=True, kw_only=True, rename="camel"):
    """A request to the page."""

    path_parameters: dict[str, str] | None = None

    @property
    def token(self) -> str:
        """What stands in the path, and proves nothing yet."""
        return (self.path_parameters or {}).get("token", "")

    def fields(self) -> dict[str, str]:
        """What was posted: a form in either encoding, for mail providers use both.

        Raises Refused: 415 no form, 413 too large, 400 one that cannot be read, or a field twice.
        """
        match self.media_type:
            case "application/x-www-form-urlencoded":
                text = self.text(MAX_BODY_BYTES).strip()
                return http_event.once(http_event.urlencoded(text, MAX_FIELDS))
            case "multipart/form-data":
                parameters = self.header("content-type").partition(";")[2]
                return http_event.once(_parts(self.text(MAX_BODY_BYTES), parameters))
        raise Refused(415, "not a form")


def read(event: Mapping[str, Any]) -> Request:
    """The request of an event. Raises Refused with 400 for what is none."""
    return http_event.read(event, Request)


def _parts(text: str, parameters: str) -> list[tuple[str, str]]:
    """The fields of a multipart form (RFC 7578); files among them are fields like any other."""
    found = _BOUNDARY.search(";" + parameters)
    if found is None:
        raise Refused(400, "a multipart form without a boundary")
    return list(_fields(text, found[1] or found[2]))


def _fields(text: str, boundary: str) -> Iterator[tuple[str, str]]:
    for part in ("\r\n" + text).split(f"\r\n--{boundary}")[1 : MAX_FIELDS + 1]:
        head, _, value = part.partition("\r\n\r\n")
        name = _NAME.search(head)
        if name:
            yield name[1] or name[2] or "", value
