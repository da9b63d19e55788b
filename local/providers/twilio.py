"""Twilio's Messages API: create, fetch and list, over `sms_network.py`; status callbacks follow. And its
account, which whoever has the token may see.

`sms_numbers.py` says which number does what.
"""

import base64
import binascii
import re
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qs, urldefrag, urlsplit

from local.providers.fax_wire import json_reply
from local.providers.http import NoAnswer, Reply, Request
from local.providers.sms import SmsNetwork
from local.providers.sms_numbers import answer
from local.providers.sms_record import Order, Refused, Sms
from local.providers.twilio_account import ACCOUNT_SID, AUTH_TOKEN, LOGINS
from local.providers.twilio_wire import REFUSALS, account_as_json, as_json, error, fault, listed, matches

PAGE_SIZE, MAX_PAGE_SIZE = 50, 1000
SLOW_SECONDS = 3.0

_ACCOUNT = f"/twilio/2010-04-01/Accounts/{ACCOUNT_SID}.json"
_PATH = re.compile(r"/twilio/2010-04-01/Accounts/([^/]+)/Messages(?:/([^/.]+))?\.json")


class TwilioSimulator:
    """The routes under /twilio. `tell` is called with each message that was accepted."""

    prefix = "/twilio"

    def __init__(
        self, network: SmsNetwork, tell: Callable[[Sms], None], slow_seconds: float = SLOW_SECONDS
    ) -> None:
        self._network = network
        self._tell = tell
        self._slow_seconds = slow_seconds

    def handle(self, request: Request) -> Reply:
        parts = urlsplit(request.path)
        if _login(request) not in LOGINS:
            return error(401, 20003, "Authenticate")
        if parts.path == _ACCOUNT:
            return self._account(request)
        path = _PATH.fullmatch(parts.path)
        if path is None or path[1] != ACCOUNT_SID:
            return error(404, 20404, f"The requested resource {parts.path} was not found")
        match request.method, path[2]:
            case "POST", None:
                return self._create(_form(request.body.decode()))
            case "GET", None:
                query = {name: values[-1] for name, values in _form(parts.query).items()}
                return self._list(query)
            case "GET", sid:
                return self._fetch(str(sid))
        return error(405, 20004, "Method not allowed")

    def _account(self, request: Request) -> Reply:
        """An API key may do all else, but not see the account."""
        if _login(request) != (ACCOUNT_SID, AUTH_TOKEN):
            return error(401, 20003, "Authentication Error - invalid username")
        if request.method != "GET":
            return error(405, 20004, "Method not allowed")
        return json_reply(HTTPStatus.OK, account_as_json(self._network.clock()))

    def _create(self, form: Mapping[str, list[str]]) -> Reply:
        try:
            order = _order(form)
        except ValueError:
            return error(400, 20001, "ValidityPeriod is not a number")
        wrong = fault(order)
        if wrong is not None:
            return error(*wrong)
        try:
            sms = self._network.submit(order)
        except Refused as refused:
            status, code, message = REFUSALS[refused.why]
            return error(status, code, message.format(to=order.to))
        self._tell(sms)
        return self._answer(sms)

    def _answer(self, sms: Sms) -> Reply:
        match answer(sms.order.to, sms.attempt):
            case "lost":
                raise NoAnswer
            case "error":
                return error(*REFUSALS["error"])
            case "slow":
                time.sleep(self._slow_seconds)
        return json_reply(HTTPStatus.CREATED, as_json(sms, sms.created))

    def _fetch(self, sid: str) -> Reply:
        sms = self._network.message(sid)
        if sms is None:
            return error(404, 20404, f"The requested resource /Messages/{sid}.json was not found")
        return json_reply(HTTPStatus.OK, as_json(sms, self._network.clock()))

    def _list(self, query: Mapping[str, str]) -> Reply:
        now = self._network.clock()
        try:
            size, page = int(query.get("PageSize", PAGE_SIZE)), int(query.get("Page", 0))
            found = [sms for sms in self._network.messages() if matches(sms, query, now)]
        except ValueError:
            return error(400, 20001, "A parameter of the list is not valid")
        if not 1 <= size <= MAX_PAGE_SIZE:
            return error(400, 20007, "Page size too large")
        start = _after(found, query["PageToken"]) if "PageToken" in query else page * size
        shown = found[start : start + size]
        more = start + size < len(found)
        return json_reply(HTTPStatus.OK, listed(shown, query, page, size, more, now))


def _after(found: list[Sms], token: str) -> int:
    """The place behind the message that a page's token names."""
    sids = [sms.sid for sms in found]
    return sids.index(token[2:]) + 1 if token[2:] in sids else len(sids)


def _order(form: Mapping[str, list[str]]) -> Order:
    last = {name: values[-1] for name, values in form.items()}
    validity = last.get("ValidityPeriod")
    return Order(
        last.get("To", ""),
        last.get("From", ""),
        last.get("MessagingServiceSid", ""),
        last.get("Body", ""),
        tuple(form.get("MediaUrl", ())),
        urldefrag(last.get("StatusCallback", "")).url,  # a fragment is for Twilio alone
        None if validity is None else int(validity),
    )


def _login(request: Request) -> tuple[str, str] | None:
    scheme, _, coded = request.headers.get("authorization", "").partition(" ")
    try:
        user, _, password = base64.b64decode(coded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return (user, password) if scheme.lower() == "basic" else None


def _form(text: str) -> dict[str, list[str]]:
    return parse_qs(text, keep_blank_values=True)
