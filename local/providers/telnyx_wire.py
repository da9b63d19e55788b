"""Telnyx's Programmable Fax API on the wire: what a fax looks like, and what it refuses.

It is as strict as Telnyx's OpenAPI description: what that does not name is refused.
https://developers.telnyx.com/api-reference/programmable-fax-commands
"""

import re
from base64 import b64decode
from typing import Any

from local.providers.fax_record import Fax
from local.providers.fax_wire import epoch, iso, json_reply
from local.providers.http import Reply

E164 = re.compile(r"\+[1-9]\d{6,14}")
QUALITIES = {"normal", "high", "very_high", "ultra_light", "ultra_dark"}
QUERY = {
    *("filter[created_at][gte]", "filter[direction][eq]", "filter[from][eq]", "filter[to][eq]"),
    *("page[number]", "page[size]"),
}
"""What a list may be asked by, as far as the simulator knows how to answer."""

_TEXTS = (
    *("connection_id", "to", "from", "from_display_name", "media_url", "media_name", "client_state"),
    *("quality", "preview_format", "webhook_url"),
)
_FLAGS = ("monochrome", "store_media", "store_preview", "t38_enabled")
_TYPES: dict[str, type] = {
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(_FLAGS, bool),
    "black_threshold": int,
}
"""What a submit may say."""

_STATUSES = {"processing": "media.processed", "busy": "failed", "no-answer": "failed", "canceled": "failed"}
_REASONS = {
    "busy": "user_busy",
    "no-answer": "receiver_no_answer",
    "failed": "fax_signaling_error",
    "unreachable": "file_download_failed",
    "unallocated": "receiver_unallocated_number",
}

Error = tuple[int, str, str, str | None]
REFUSALS: dict[str, Error] = {
    "invalid": (422, "10016", "Phone number must be in +E.164 format", "/to"),
    "throttled": (429, "10011", "Too many requests", None),
    "error": (500, "10007", "Unexpected error", None),
    "forbidden": (403, "10010", "Authorization failed", None),
}
NOT_FOUND: Error = (404, "10005", "Resource not found", None)


def as_json(fax: Fax, now: float) -> dict[str, Any]:
    """A fax as the API shows it."""
    status = fax.status(now)
    reason = "sender_canceled" if fax.canceled else _REASONS.get(fax.course)
    shown = _STATUSES.get(status, status)
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
        "status": shown,
        "failure_reason": reason if shown == "failed" else None,
        "client_state": fax.order.reference,
        "created_at": iso(fax.created),
        "updated_at": iso(min(now, fax.ends)),
    }


def fault(wish: Any) -> Error | None:
    """What is wrong with a submit."""
    if not isinstance(wish, dict):
        return 400, "10015", "Bad Request", None
    for name, value in wish.items():
        if not isinstance(value, _TYPES.get(name, ())):
            return 422, "10015", "Bad Request", f"/{name}"
    for name in ("to", "from"):
        if not E164.fullmatch(wish.get(name, "")):
            return 422, "10016", "Phone number must be in +E.164 format", f"/{name}"
    return _other_fault(wish)


def _other_fault(wish: dict[str, Any]) -> Error | None:
    if not wish.get("connection_id"):
        return 422, "10004", "Missing required parameter", "/connection_id"
    if not wish.get("media_url", "").startswith(("http://", "https://")):
        return 422, "10003", "Invalid URL", "/media_url"
    if wish.get("quality", "high") not in QUALITIES:
        return 422, "10015", "Bad Request", "/quality"
    try:
        b64decode(wish.get("client_state", ""), validate=True)
    except ValueError:
        return 422, "10015", "Bad Request", "/client_state"
    return None


def matches(fax: Fax, query: dict[str, str]) -> bool:
    """Whether a list with this query shows the fax. Raises ValueError for a date that is none."""
    created = int(fax.created)
    return (
        query.get("filter[to][eq]", fax.order.to) == fax.order.to
        and query.get("filter[from][eq]", fax.order.sender) == fax.order.sender
        and query.get("filter[direction][eq]", "outbound") == "outbound"
        and ("filter[created_at][gte]" not in query or created >= epoch(query["filter[created_at][gte]"]))
    )


def error(status: int, code: str, title: str, pointer: str | None) -> Reply:
    """An error's answer."""
    said: dict[str, Any] = {"code": code, "title": title, "detail": f"{title}."}
    if pointer is not None:
        said |= {"source": {"pointer": pointer}}
    limits = {"x-ratelimit-limit": "1", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}
    return json_reply(status, {"errors": [said]}, limits if status == 429 else None)
