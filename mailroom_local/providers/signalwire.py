"""SignalWire's Compatibility API for faxes: submit, fetch, list and cancel. The faxes are in the network of
`fax.py`."""

import re
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from mailroom.providers.signalwire.sender import REFUSALS as ROWS
from mailroom_local.providers.fax import FaxLine, FaxOrder, SimulatedFax
from mailroom_local.providers.http import E164, Reply, Request, SubmitRefused, epoch, iso, json_reply
from mailroom_local.providers.rows import number_code

PAGE_SIZE = 50

_PATH = re.compile(r"/signalwire(/api/laml/2010-04-01/Accounts/([^/]+)/Faxes)(?:/([^/.]+))?(?:\.json)?/?")
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


class SignalWireSimulator:
    """Simulator of the routes under /signalwire/api/laml/2010-04-01/Accounts/{project}/Faxes."""

    prefix = "/signalwire"

    def __init__(self, line: FaxLine) -> None:
        self._line = line

    def handle(self, request: Request) -> Reply:
        path = _PATH.fullmatch(request.route)
        if path is None:
            return error(404, 20404, "The requested resource was not found.")
        uri, project, fax_id = path.groups()
        user, token = request.login or ("", "")
        if user != project or not token:  # any token is valid
            return error(401, 20003, "Authentication failed.")
        match request.method, fax_id:
            case "POST", None:
                return self._submit(project, uri, request.form)
            case "GET", None:
                return self._list(project, uri, request.query)
        return self._one(request, project, uri, fax_id)

    def _one(self, request: Request, project: str, uri: str, fax_id: str | None) -> Reply:
        fax = self._line.fax("signalwire", fax_id or "")
        if fax is None:
            return error(404, 20404, "The requested fax was not found.")
        match request.method:
            case "GET":
                return json_reply(HTTPStatus.OK, self._shown(fax, project, uri))
            case "POST":
                return self._cancel(fax, project, uri, request.form)
        return error(405, 20004, "Method not allowed.")

    def _submit(self, project: str, uri: str, form: dict[str, str]) -> Reply:
        wrong = fault(form)
        if wrong is not None:
            return error(*wrong)
        if (row := ROWS.get(number_code(form["To"]).lstrip("0"))) is not None:
            return error(429 if row.fault == "throttled" else 400, int(row.code), row.words)
        order = FaxOrder(
            "signalwire",
            form["To"],
            form["From"],
            form["MediaUrl"],
            quality=form.get("Quality", "fine"),
            ttl_minutes=int(form.get("Ttl", "60")),
            store_media=form.get("StoreMedia", "true") != "false",
        )
        try:
            fax = self._line.submit(order)
        except SubmitRefused as refused:
            return error(*REFUSALS[refused.why])
        return json_reply(HTTPStatus.CREATED, self._shown(fax, project, uri))

    def _cancel(self, fax: SimulatedFax, project: str, uri: str, form: dict[str, str]) -> Reply:
        if form.get("Status") != "canceled":
            return error(400, 10000, "Status must be canceled.")
        if not self._line.cancel(fax, {"queued"}):
            return error(400, 10000, "An in-progress or finished fax cannot be canceled.")
        return json_reply(HTTPStatus.OK, self._shown(fax, project, uri))

    def _list(self, project: str, uri: str, query: dict[str, str]) -> Reply:
        try:
            size, page = max(1, int(query.get("PageSize", PAGE_SIZE))), int(query.get("Page", 0))
            faxes = [fax for fax in self._line.faxes("signalwire") if matches(fax, query)]
        except ValueError:
            return error(400, 10000, "The argument passed is invalid.")
        last = max(0, (len(faxes) - 1) // size)
        return json_reply(
            HTTPStatus.OK,
            {
                "uri": page_uri(uri, query, page),
                "first_page_uri": page_uri(uri, query, 0),
                "next_page_uri": page_uri(uri, query, page + 1) if page < last else None,
                "previous_page_uri": page_uri(uri, query, page - 1) if page else None,
                "page": page,
                "page_size": size,
                "faxes": [self._shown(fax, project, uri) for fax in faxes[page * size : (page + 1) * size]],
            },
        )

    def _shown(self, fax: SimulatedFax, project: str, uri: str) -> dict[str, Any]:
        return as_json(fax, self._line.clock(), project, uri)


def as_json(fax: SimulatedFax, moment: float, project: str, uri: str) -> dict[str, Any]:
    """Return a fax in the form of the API. `uri` is the URI of the list."""
    status = fax.status(moment)
    code, message = ERRORS.get(fax.course, (None, None)) if status == "failed" else (None, None)
    delivered = status == "delivered"
    return {
        "account_sid": project,
        "api_version": "v1",
        "date_created": iso(fax.created),
        "date_updated": iso(min(moment, fax.ends)),
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


def matches(fax: SimulatedFax, query: dict[str, str]) -> bool:
    """Return whether a list with this query contains the fax. Raises ValueError for an invalid date."""
    created = int(fax.created)
    return query.get("To", fax.order.to) == fax.order.to and (
        "DateCreatedAfter" not in query or created > epoch(query["DateCreatedAfter"])
    )


def page_uri(uri: str, query: dict[str, str], number: int) -> str:
    return f"{uri}?{urlencode({**query, 'Page': str(number)})}"


def error(status: int, code: int, message: str) -> Reply:
    body = {"code": str(code), "message": message, "more_info": "", "status": status}
    return json_reply(status, body, {"Retry-After": "1"} if status == 429 else None)
