"""Telnyx's Programmable Fax API: submit, fetch, list and cancel. The faxes are in the network of `fax.py`.

The simulator is stricter than Telnyx's OpenAPI description: it refuses fields that Mailroom does not use.
https://developers.telnyx.com/api-reference/programmable-fax-commands
"""

import re
from base64 import b64encode
from http import HTTPStatus
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from mailroom.providers.telnyx.sender import EVENTS
from mailroom.providers.telnyx.sender import REFUSALS as ROWS
from mailroom_local.providers.fax import FaxLine, FaxOrder, SimulatedFax
from mailroom_local.providers.http import E164, Reply, Request, SubmitRefused, epoch, iso, json_reply
from mailroom_local.providers.rows import number_code

PAGE_SIZE = 20

_PATH = re.compile(r"/telnyx/v2/faxes(?:/([^/]+)(/actions/cancel)?)?/?")
_CANCELABLE = {"queued", "processing", "sending"}
QUERY = {
    *("filter[created_at][gte]", "filter[direction][eq]", "filter[to][eq]", "page[number]", "page[size]"),
}
"""Query parameters of a list that the simulator supports."""
_STATUSES = {"processing": "media.processed", "busy": "failed", "no-answer": "failed", "canceled": "failed"}
_REASONS = {
    "busy": "user_busy",
    "no-answer": "receiver_no_answer",
    "failed": "fax_signaling_error",
    "unreachable": "file_download_failed",
    "unallocated": "receiver_unallocated_number",
    "canceled": "sender_canceled",
}
Error = tuple[int, str, str, str | None]
REFUSALS: dict[str, Error] = {
    "invalid": (422, "10016", "Phone number must be in +E.164 format", "/to"),
    "throttled": (429, "10011", "Too many requests", None),
    "error": (500, "10007", "Unexpected error", None),
    "forbidden": (403, "10010", "Authorization failed", None),
}
_FAULTS = {
    "to": ("10016", "Phone number must be in +E.164 format"),
    "from": ("10016", "Phone number must be in +E.164 format"),
    "media_url": ("10003", "Invalid URL"),
    "connection_id": ("10004", "Missing required parameter"),
}
"""Codes and titles of errors, by field. Errors of other fields have the title Bad Request."""
_FIELD = re.compile(r"(?:at `\$\.|field `)(\w+)")
NOT_FOUND: Error = (404, "10005", "Resource not found", None)


_Number = Annotated[str, Meta(pattern=rf"^{E164.pattern}$")]


class Submit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of a submit, with the fields that Mailroom sends."""

    to: _Number
    from_: _Number = field(name="from")
    media_url: Annotated[str, Meta(pattern="^https?://")]
    connection_id: Annotated[str, Meta(min_length=1)]
    quality: Literal["normal", "high", "very_high", "ultra_light", "ultra_dark"] = "high"
    client_state: bytes = b""
    """Arbitrary data of the sender, in base64."""
    store_media: bool = False


class TelnyxSimulator:
    """Simulator of the routes under /telnyx/v2/faxes."""

    prefix = "/telnyx"

    def __init__(self, line: FaxLine) -> None:
        self._line = line

    def handle(self, request: Request) -> Reply:
        path = _PATH.fullmatch(request.route)
        if path is None:
            return error(*NOT_FOUND)
        if not request.bearer:
            return error(401, "10009", "Authentication failed", None)
        fax_id, cancel = path.groups()
        match request.method, fax_id:
            case "POST", None:
                return self._submit(request.body)
            case "GET", None:
                return self._list(request.query)
        return self._one(request, fax_id, cancel)

    def _one(self, request: Request, fax_id: str, cancel: str | None) -> Reply:
        fax = self._line.fax("telnyx", fax_id)
        match request.method, cancel:
            case _ if fax is None:
                return error(*NOT_FOUND)
            case "GET", None:
                return json_reply(HTTPStatus.OK, {"data": as_json(fax, self._line.clock())})
            case "POST", str() if request.body:
                return error(422, "10015", "A cancel has no body", None)
            case "POST", str():
                if not self._line.cancel(fax, _CANCELABLE):
                    return error(422, "10015", "The fax is over and cannot be canceled", None)
                return json_reply(HTTPStatus.ACCEPTED, {"data": {"result": "ok"}})
        return error(*NOT_FOUND)

    def _submit(self, body: bytes) -> Reply:
        try:
            wish = msgspec.json.decode(body, type=Submit)
        except msgspec.DecodeError as wrong:
            return error(*fault(wrong))
        if (row := ROWS.get(number_code(wish.to))) is not None:
            return error(429 if row.fault == "throttled" else 422, row.code, row.words, "/to")
        order = FaxOrder(
            "telnyx",
            wish.to,
            wish.from_,
            wish.media_url,
            quality=wish.quality,
            reference=b64encode(wish.client_state).decode(),
            store_media=wish.store_media,
            account=wish.connection_id,
        )
        try:
            fax = self._line.submit(order)
        except SubmitRefused as refused:
            return error(*REFUSALS[refused.why])
        return json_reply(HTTPStatus.ACCEPTED, {"data": as_json(fax, self._line.clock())})

    def _list(self, query: dict[str, str]) -> Reply:
        unknown = query.keys() - QUERY
        if unknown:
            return error(422, "10015", f"Unknown parameter {min(unknown)}", None)
        try:
            size, page = (
                max(1, int(query.get(f"page[{name}]", lowest)))
                for name, lowest in (("size", PAGE_SIZE), ("number", 1))
            )
            faxes = [fax for fax in self._line.faxes("telnyx") if matches(fax, query)]
        except ValueError:
            return error(422, "10015", "Bad Request", None)
        pages = -(-len(faxes) // size)
        meta = {"total_pages": pages, "total_results": len(faxes), "page_number": page, "page_size": size}
        listed = faxes[(page - 1) * size : page * size]
        return json_reply(
            HTTPStatus.OK, {"data": [as_json(fax, self._line.clock()) for fax in listed], "meta": meta}
        )


def as_json(fax: SimulatedFax, moment: float) -> dict[str, Any]:
    status = fax.status(moment)
    code = number_code(fax.order.to)
    reason = [*EVENTS][int(code[1:])] if code.startswith("9") else _REASONS.get(fax.course)
    word = _STATUSES.get(status, status)
    return {
        "record_type": "fax",
        "id": fax.id,
        "connection_id": fax.order.account,
        "direction": "outbound",
        "from": fax.order.sender,
        "to": fax.order.to,
        "media_url": fax.order.media_url,
        "store_media": fax.order.store_media,
        "stored_media_url": None,
        "preview_url": None,
        "quality": fax.order.quality,
        "webhook_url": None,
        "webhook_failover_url": None,
        "status": word,
        "failure_reason": reason if word == "failed" else None,
        "client_state": fax.order.reference,
        **({"page_count": 1} if word == "delivered" else {}),
        "created_at": iso(fax.created),
        "updated_at": iso(min(moment, fax.ends)),
    }


def fault(wrong: msgspec.DecodeError) -> Error:
    """Return the error for a body that is not a valid submit."""
    name = _FIELD.search(f"{wrong}")
    if name is None:
        return 400, "10015", "Bad Request", None
    return 422, *_FAULTS.get(name[1], ("10015", "Bad Request")), f"/{name[1]}"


def matches(fax: SimulatedFax, query: dict[str, str]) -> bool:
    """Return whether a list with this query contains the fax. Raises ValueError for an invalid date."""
    created = int(fax.created)
    return (
        query.get("filter[to][eq]", fax.order.to) == fax.order.to
        and query.get("filter[direction][eq]", "outbound") == "outbound"
        and ("filter[created_at][gte]" not in query or created >= epoch(query["filter[created_at][gte]"]))
    )


def error(status: int, code: str, title: str, pointer: str | None) -> Reply:
    fields: dict[str, Any] = {"code": code, "title": title, "detail": f"{title}."}
    if pointer is not None:
        fields |= {"source": {"pointer": pointer}}
    limits = {"x-ratelimit-limit": "1", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}
    return json_reply(status, {"errors": [fields]}, limits if status == 429 else None)
