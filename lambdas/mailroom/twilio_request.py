"""A request that claims to be a status callback of Twilio: read strictly, and none of it believed yet."""

import base64
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from mailroom import reference
from mailroom.errors import Malformed
from mailroom.reference import Reference

MAX_BODY_BYTES = 64 * 1024
"""A callback has less than 1 KB."""
MAX_FIELDS = 100
"""A callback has some twenty."""
FORM = "application/x-www-form-urlencoded"

_PATH = re.compile(r"/callbacks/twilio/([A-Za-z0-9_.-]{1,256})", re.ASCII)
_QUERY = re.compile(r"[!-~]*", re.ASCII)


class Refused(Exception):
    """Answered with `status` and nothing else; the sentence is for the log and quotes nothing."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Said(Struct, frozen=True):
    """What a request says. `path` is path and query as they were signed."""

    reference: Reference
    path: str
    signature: str
    fields: dict[str, str]


class _Request(Struct, frozen=True, rename="camel"):
    """The HTTP API's event, payload format 2.0, as far as it is used.

    The API hands the path on decoded. No path that is taken here has anything to decode.
    """

    raw_path: str
    raw_query_string: str = ""
    headers: dict[str, str] = {}
    body: str | None = None
    is_base64_encoded: bool = False

    def header(self, name: str) -> str:
        return next((value for each, value in self.headers.items() if each.lower() == name), "")


def read(event: Mapping[str, Any]) -> Said:
    """What a request says, nothing of which is proved. Raises Refused: 413 too large, 415 no form, 404 no
    path of a message, 400 anything else."""
    try:
        request = msgspec.convert(event, _Request)
    except msgspec.ValidationError as error:
        raise Refused(400, f"not a request of an HTTP API: {error}") from None
    _check_size(request)
    if request.header("content-type").partition(";")[0].strip().lower() != FORM:
        raise Refused(415, "not a form")
    found = _reference(request.raw_path)
    if not _QUERY.fullmatch(request.raw_query_string):
        raise Refused(400, "the query is not printable ASCII")
    query = f"?{request.raw_query_string}" if request.raw_query_string else ""
    signature = request.header("x-twilio-signature")
    return Said(found, request.raw_path + query, signature, _fields(_body(request)))


def _check_size(request: _Request) -> None:
    size = len((request.body or "").encode("utf-8", "surrogatepass"))
    if request.is_base64_encoded:  # three bytes in four characters; what is too large is never decoded
        size = size // 4 * 3 - 2
    if size > MAX_BODY_BYTES:
        raise Refused(413, "the body is too large")


def _reference(path: str) -> Reference:
    found = _PATH.fullmatch(path)
    try:
        return reference.read(found[1] if found else "")
    except Malformed:
        raise Refused(404, "the path names no message") from None


def _body(request: _Request) -> str:
    body = request.body or ""
    try:
        return base64.b64decode(body, validate=True).decode() if request.is_base64_encoded else body
    except ValueError:
        raise Refused(400, "the body is not the base64 of UTF-8") from None


def _fields(form: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(form, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
        fields = dict(pairs)
        "".join(f"{name}{value}" for name, value in pairs).encode()
    except ValueError:  # also of characters that UTF-8 has none for
        raise Refused(400, "the form cannot be read") from None
    if len(fields) < len(pairs):
        # Twilio repeats none, and of two values one would have to be believed.
        raise Refused(400, "a field stands in the form twice")
    return fields
