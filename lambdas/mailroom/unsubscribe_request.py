"""A request to the page for opting out: read strictly, and bounded before anything is done with it."""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

MAX_BODY_BYTES = 8 * 1024
"""What mail programs and the page post has some 200."""
MAX_FIELDS = 20

_PARAMETER = r'(?:^|;)\s*{}=(?:"([^"\r\n]*)"|([^\s;"]+))'
_BOUNDARY = re.compile(_PARAMETER.format("boundary"), re.IGNORECASE)
_NAME = re.compile(
    r"^content-disposition:\s*form-data\b[^\r\n]*?" + _PARAMETER.format("name"), re.IGNORECASE | re.MULTILINE
)


class Refused(Exception):
    """Answered with `status`; the sentence is for the log and quotes nothing."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Http(Struct, frozen=True):
    method: str = ""


class _Context(Struct, frozen=True):
    http: _Http = _Http()


class Request(Struct, frozen=True, rename="camel"):
    """The HTTP API's event, payload format 2.0, as far as it is used."""

    request_context: _Context = _Context()
    path_parameters: dict[str, str] | None = None
    headers: dict[str, str] = {}
    body: str | None = None
    is_base64_encoded: bool = False

    @property
    def method(self) -> str:
        """GET, HEAD, POST or whatever else."""
        return self.request_context.http.method

    @property
    def token(self) -> str:
        """What stands in the path, and proves nothing yet."""
        return (self.path_parameters or {}).get("token", "")

    def fields(self) -> dict[str, str]:
        """What was posted: a form in either encoding, for mail providers use both.

        Raises Refused: 413 too large, 415 no form, 400 one that cannot be read, or a field twice.
        """
        self._check_size()
        kind, _, parameters = self._header("content-type").partition(";")
        match kind.strip().lower():
            case "application/x-www-form-urlencoded":
                pairs = _urlencoded(self._text())
            case "multipart/form-data":
                pairs = _parts(self._text(), parameters)
            case _:
                raise Refused(415, "not a form")
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise Refused(400, "a field stands in the form twice")
        return fields

    def _header(self, name: str) -> str:
        return next((value for each, value in self.headers.items() if each.lower() == name), "")

    def _check_size(self) -> None:
        size = len((self.body or "").encode("utf-8", "surrogatepass"))
        if self.is_base64_encoded:  # three bytes in four characters; what is too large is never decoded
            size = size // 4 * 3 - 2
        if size > MAX_BODY_BYTES:
            raise Refused(413, "the body is too large")

    def _text(self) -> str:
        body = self.body or ""
        try:
            return base64.b64decode(body, validate=True).decode() if self.is_base64_encoded else body
        except ValueError:
            raise Refused(400, "the body is not the base64 of UTF-8") from None


def read(event: Mapping[str, Any]) -> Request:
    """The request of an event. Raises Refused with 400 for what is none."""
    try:
        return msgspec.convert(event, Request)
    except msgspec.ValidationError:
        raise Refused(400, "not a request of an HTTP API") from None


def _urlencoded(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text.strip(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        raise Refused(400, "the form cannot be read") from None


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
