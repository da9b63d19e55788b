"""SignalWire's Compatibility API for faxes: submit, fetch, list and cancel, over `fax_line.py`."""

import base64
import binascii
import re
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

from local.providers.fax import FaxLine
from local.providers.fax_record import Fax, Order, Refused
from local.providers.fax_wire import json_reply
from local.providers.http import NoAnswer, Reply, Request
from local.providers.signalwire_wire import REFUSALS, as_json, error, fault, matches, page_uri

PAGE_SIZE = 50

_PATH = re.compile(r"/signalwire(/api/laml/2010-04-01/Accounts/([^/]+)/Faxes)(?:/([^/.]+))?(?:\.json)?/?")


class SignalWireSimulator:
    """The routes under /signalwire/api/laml/2010-04-01/Accounts/{project}/Faxes."""

    prefix = "/signalwire"

    def __init__(self, line: FaxLine) -> None:
        self._line = line

    def handle(self, request: Request) -> Reply:
        parts = urlsplit(request.path)
        path = _PATH.fullmatch(parts.path)
        if path is None:
            return error(404, 20404, "The requested resource was not found.")
        uri, project, fax_id = path.groups()
        if _user(request) != project:
            return error(401, 20003, "Authentication failed.")
        match request.method, fax_id:
            case "POST", None:
                return self._submit(project, uri, _form(request.body.decode()))
            case "GET", None:
                return self._list(project, uri, _form(parts.query))
        return self._one(request, project, uri, fax_id)

    def _one(self, request: Request, project: str, uri: str, fax_id: str | None) -> Reply:
        fax = self._line.fax("signalwire", fax_id or "")
        if fax is None:
            return error(404, 20404, "The requested fax was not found.")
        match request.method:
            case "GET":
                return json_reply(HTTPStatus.OK, self._shown(fax, project, uri))
            case "POST":
                return self._cancel(fax, project, uri, _form(request.body.decode()))
        return error(405, 20004, "Method not allowed.")

    def _submit(self, project: str, uri: str, form: dict[str, str]) -> Reply:
        wrong = fault(form)
        if wrong is not None:
            return error(*wrong)
        order = Order(
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
        except Refused as refused:
            return error(*REFUSALS[refused.why])
        if fax.course == "lost":
            raise NoAnswer
        return json_reply(HTTPStatus.CREATED, self._shown(fax, project, uri))

    def _cancel(self, fax: Fax, project: str, uri: str, form: dict[str, str]) -> Reply:
        if form.get("Status") != "canceled":
            return error(400, 10000, "Status must be canceled.")
        if not self._line.cancel(fax, {"queued"}):
            return error(400, 10000, "An in-progress or finished fax cannot be canceled.")
        return json_reply(HTTPStatus.OK, self._shown(fax, project, uri))

    def _list(self, project: str, uri: str, query: dict[str, str]) -> Reply:
        try:
            size, page = max(1, int(query.get("PageSize", PAGE_SIZE))), int(query.get("Page", 0))
            found = [fax for fax in self._line.faxes("signalwire") if matches(fax, query)]
        except ValueError:
            return error(400, 10000, "The argument passed is invalid.")
        last = max(0, (len(found) - 1) // size)
        return json_reply(
            HTTPStatus.OK,
            {
                "uri": page_uri(uri, query, page),
                "first_page_uri": page_uri(uri, query, 0),
                "next_page_uri": page_uri(uri, query, page + 1) if page < last else None,
                "previous_page_uri": page_uri(uri, query, page - 1) if page else None,
                "page": page,
                "page_size": size,
                "faxes": [self._shown(fax, project, uri) for fax in found[page * size : (page + 1) * size]],
            },
        )

    def _shown(self, fax: Fax, project: str, uri: str) -> dict[str, Any]:
        return as_json(fax, self._line.clock(), project, uri)


def _user(request: Request) -> str | None:
    """The project that the credentials name; any token will do, but there has to be one."""
    scheme, _, coded = request.headers.get("authorization", "").partition(" ")
    try:
        user, _, token = base64.b64decode(coded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return user if scheme.lower() == "basic" and token else None


def _form(text: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(text).items()}
