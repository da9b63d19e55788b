"""A request that claims to be a status callback of Twilio: read strictly, and none of it believed yet."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.http import event as http_event
from mailroom.http.event import Refused
from mailroom.message.message import Reference

MAX_BODY_BYTES = 64 * 1024
"""A callback has less than 1 KB."""
MAX_FIELDS = 100
"""A callback has some twenty."""
FORM = "application/x-www-form-urlencoded"

_PATH = re.compile(r"/callbacks/twilio/([A-Za-z0-9_.-]{1,256})", re.ASCII)
_QUERY = re.compile(r"[!-~]*", re.ASCII)
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+", re.ASCII)


class Said(Struct, frozen=True):
    """What a request says. `path` is path and query as they were signed. `host` is not the request's own word
    but API Gateway's, who found this API by it; "": it names none."""

    reference: Reference
    path: str
    host: str
    signature: str
    fields: dict[str, str]


class _Request(http_event.Request, frozen=True, kw_only=True, rename="camel"):
    """The API hands the path on decoded. No path that is taken here has anything to decode."""

    raw_path: str
    raw_query_string: str = ""


def read(event: Mapping[str, Any]) -> Said:
    """What a request says, nothing of which is proved. Raises Refused: 415 no form, 404 no path of a
    message, 413 too large, 400 anything else."""
    request = http_event.read(event, _Request)
    if request.media_type != FORM:
        raise Refused(415, "not a form")
    found = _reference(request.raw_path)
    if not _QUERY.fullmatch(request.raw_query_string):
        raise Refused(400, "the query is not printable ASCII")
    query = f"?{request.raw_query_string}" if request.raw_query_string else ""
    signature = request.header("x-twilio-signature")
    return Said(
        found, request.raw_path + query, _host(request), signature, _fields(request.text(MAX_BODY_BYTES))
    )


def _reference(path: str) -> Reference:
    found = _PATH.fullmatch(path)
    try:
        return Reference.read(found[1] if found else "")
    except Malformed:
        raise Refused(404, "the path names no message") from None


def _host(request: _Request) -> str:
    # What is signed is one text, without marks between its parts: nothing but a name may pass for one.
    name = request.request_context.domain_name or ""
    return name if _HOST.fullmatch(name) else ""


def _fields(form: str) -> dict[str, str]:
    fields = http_event.once(http_event.urlencoded(form, MAX_FIELDS))
    try:
        "".join(f"{name}{value}" for name, value in fields.items()).encode()
    except ValueError:  # characters that UTF-8 has none for: no signature is made of them
        raise Refused(400, "the form cannot be read") from None
    return fields
