"""Telnyx's Programmable Fax API: submit, fetch, list and cancel, over `fax_line.py`."""

import json
import re
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from local.providers.fax import FaxLine
from local.providers.fax_record import Order, Refused
from local.providers.fax_wire import json_reply
from local.providers.http import NoAnswer, Reply, Request
from local.providers.telnyx_wire import NOT_FOUND, QUERY, REFUSALS, as_json, error, fault, matches

PAGE_SIZE = 20

_PATH = re.compile(r"/telnyx/v2/faxes(?:/([^/]+)(/actions/cancel)?)?/?")
_CANCELABLE = {"queued", "processing", "sending"}


class TelnyxSimulator:
    """The routes under /telnyx/v2/faxes."""

    prefix = "/telnyx"

    def __init__(self, line: FaxLine) -> None:
        self._line = line

    def handle(self, request: Request) -> Reply:
        parts = urlsplit(request.path)
        path = _PATH.fullmatch(parts.path)
        if path is None:
            return error(*NOT_FOUND)
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            return error(401, "10009", "Authentication failed", None)
        fax_id, cancel = path.groups()
        match request.method, fax_id:
            case "POST", None:
                return self._submit(request.body)
            case "GET", None:
                return self._list({name: values[-1] for name, values in parse_qs(parts.query).items()})
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
            wish = json.loads(body)
        except ValueError:
            return error(400, "10015", "Bad Request", None)
        wrong = fault(wish)
        if wrong is not None:
            return error(*wrong)
        order = Order(
            "telnyx",
            wish["to"],
            wish["from"],
            wish["media_url"],
            quality=wish.get("quality", "high"),
            reference=wish.get("client_state", ""),
            store_media=wish.get("store_media", False),
            account=wish["connection_id"],
        )
        try:
            fax = self._line.submit(order)
        except Refused as refused:
            return error(*REFUSALS[refused.why])
        if fax.course == "lost":
            raise NoAnswer
        return json_reply(HTTPStatus.ACCEPTED, {"data": as_json(fax, self._line.clock())})

    def _list(self, query: dict[str, str]) -> Reply:
        unknown = query.keys() - QUERY
        if unknown:
            return error(422, "10015", f"Unknown parameter {min(unknown)}", None)
        try:
            size, page = (
                max(1, int(query.get(f"page[{name}]", least)))
                for name, least in (("size", PAGE_SIZE), ("number", 1))
            )
            found = [fax for fax in self._line.faxes("telnyx") if matches(fax, query)]
        except ValueError:
            return error(422, "10015", "Bad Request", None)
        pages = -(-len(found) // size)
        meta = {"total_pages": pages, "total_results": len(found), "page_number": page, "page_size": size}
        shown = found[(page - 1) * size : page * size]
        return json_reply(
            HTTPStatus.OK, {"data": [as_json(fax, self._line.clock()) for fax in shown], "meta": meta}
        )
