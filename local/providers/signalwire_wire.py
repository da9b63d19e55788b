"""SignalWire's Compatibility API on the wire: what a fax looks like, and what it refuses."""

import re
from typing import Any
from urllib.parse import urlencode

from local.providers.fax_record import Fax
from local.providers.fax_wire import epoch, iso, json_reply
from local.providers.http import Reply

E164 = re.compile(r"\+[1-9]\d{6,14}")
QUALITIES = {"standard", "fine", "superfine"}

Error = tuple[int, int, str]

REFUSALS: dict[str, Error] = {
    "invalid": (400, 21211, "The 'To' number is not a valid phone number."),
    "throttled": (429, 20429, "Too many requests."),
    "error": (500, 20500, "Internal server error."),
    "forbidden": (403, 20005, "The account is not active."),
}
ERRORS = {
    "failed": (34001, "The fax could not be negotiated with the receiver."),
    "unreachable": (11200, "HTTP retrieval failure: the media could not be fetched."),
    "unallocated": (21217, "The phone number does not appear to be valid."),
}


def as_json(fax: Fax, now: float, project: str, uri: str) -> dict[str, Any]:
    """A fax as the API shows it; `uri` is that of the list."""
    status = fax.status(now)
    code, message = ERRORS.get(fax.course, (None, None)) if status == "failed" else (None, None)
    delivered = status == "delivered"
    return {
        "account_sid": project,
        "api_version": "v1",
        "date_created": iso(fax.created),
        "date_updated": iso(min(now, fax.ends)),
        "direction": "outbound",
        "from": fax.order.sender,
        "media_url": fax.order.media_url if fax.order.store_media else None,
        "media_sid": None,
        "num_pages": "1" if delivered else None,
        "price": None,
        "price_unit": None,
        "quality": fax.order.quality,
        "sid": fax.id,
        "status": status,
        "to": fax.order.to,
        "duration": round(fax.ends - fax.created) if delivered else None,
        "links": {"media": f"{uri}/{fax.id}/Media"},
        "url": f"{uri}/{fax.id}",
        "error_code": code,
        "error_message": message,
    }


def fault(form: dict[str, str]) -> Error | None:
    """What is wrong with a submit."""
    if not E164.fullmatch(form.get("To", "")):
        return REFUSALS["invalid"]
    if not E164.fullmatch(form.get("From", "")):
        return 400, 21212, "The 'From' number is not a valid phone number."
    if not form.get("MediaUrl", "").startswith(("http://", "https://")):
        return 400, 10000, "MediaUrl must be the URL of a PDF."
    ttl = form.get("Ttl", "60")
    if not ttl.isdecimal() or not 5 <= int(ttl) <= 300:
        return 400, 10000, "Ttl must be between 5 and 300."
    if form.get("Quality", "fine") not in QUALITIES:
        return 400, 10000, "Quality must be standard, fine or superfine."
    return None


def matches(fax: Fax, query: dict[str, str]) -> bool:
    """Whether a list with this query shows the fax. Raises ValueError for a date that is none."""
    created = int(fax.created)
    return (
        query.get("To", fax.order.to) == fax.order.to
        and query.get("From", fax.order.sender) == fax.order.sender
        and ("DateCreatedAfter" not in query or created > epoch(query["DateCreatedAfter"]))
        and ("DateCreatedOnOrBefore" not in query or created <= epoch(query["DateCreatedOnOrBefore"]))
    )


def page_uri(uri: str, query: dict[str, str], number: int) -> str:
    """Where a page of a list is."""
    return f"{uri}?{urlencode({**query, 'Page': str(number)})}"


def error(status: int, code: int, message: str) -> Reply:
    """An error's answer."""
    body = {"code": str(code), "message": message, "more_info": "", "status": status}
    return json_reply(status, body, {"Retry-After": "1"} if status == 429 else None)
