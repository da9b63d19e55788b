"""Twilio's Messages API: create, fetch and list messages of the simulated network, and fetch the account.

A list can only be filtered by `To`, as in Mailroom's requests. A second account with the same messages
redacts the number and the text of each message that was sent. `sms.py` describes the behaviour of the
numbers, and `twilio_callbacks.py` posts the status callbacks.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urldefrag, urlencode

from mailroom.channels.sms.segments import segments_of
from mailroom.providers.twilio.refusals import EVENTS
from mailroom.providers.twilio.refusals import REFUSALS as ROWS
from mailroom_local.providers.http import E164, NoAnswer, Reply, Request, SubmitRefused, json_reply
from mailroom_local.providers.rows import number_code
from mailroom_local.providers.sms import SimulatedSms, SmsNetwork, SmsOrder, answer_to

PAGE_SIZE, MAX_PAGE_SIZE = 50, 1000

ACCOUNT_SID = "AC" + "0123456789abcdef" * 2
AUTH_TOKEN = "local"  # noqa: S105 - only for the simulator
API_KEY = "SK" + "fedcba9876543210" * 2
API_KEY_SECRET = "local-key"  # noqa: S105 - only for the simulator
REDACTING_SID = "AC" + "13579bdf02468ace" * 2
"""Account that redacts.
Source: https://www.twilio.com/docs/messaging/guides/privacy-message-redaction (2026-11-29)."""
SECRET = {"account_sid": ACCOUNT_SID, "auth_token": AUTH_TOKEN}
LOGINS = {(ACCOUNT_SID, AUTH_TOKEN), (REDACTING_SID, AUTH_TOKEN), (API_KEY, API_KEY_SECRET)}
VERSION = "2010-04-01"
_ACCOUNTS = {f"/twilio/{VERSION}/Accounts/{sid}.json": sid for sid in (ACCOUNT_SID, REDACTING_SID)}
_PATH = re.compile(r"/twilio/2010-04-01/Accounts/([^/]+)/Messages(?:/([^/.]+))?\.json")
URI = f"/{VERSION}/Accounts/{ACCOUNT_SID}/Messages"
MAX_BODY = 1600
MAX_MEDIA = 10
MAX_VALIDITY = 36_000
Error = tuple[int, int, str]
"""HTTP status, Twilio's error code, and error message."""
REFUSALS: dict[str, Error] = {
    "invalid": (400, 21211, "Invalid 'To' Phone Number: {to}"),
    "landline": (400, 21614, "'To' number: {to}, is not a mobile number"),
    "unsubscribed": (400, 21610, "Attempt to send to unsubscribed recipient"),
    "forbidden": (
        400,
        21408,
        "Permission to send an SMS or MMS has not been enabled for the region indicated by the 'To' number: "
        "{to}",
    ),
    "throttled": (429, 20429, "Too Many Requests"),
    "error": (500, 20500, "An internal server error has occurred"),
}


@dataclass(frozen=True)
class TwilioSimulator:
    """Simulator of the routes under /twilio. `on_accepted` is called with each accepted message."""

    prefix = "/twilio"

    network: SmsNetwork
    on_accepted: Callable[[SimulatedSms], None]

    def handle(self, request: Request) -> Reply:
        if request.login not in LOGINS:
            return error(401, 20003, "Authenticate")
        if request.route in _ACCOUNTS:
            return self._account(request, _ACCOUNTS[request.route])
        path = _PATH.fullmatch(request.route)
        if path is None or path[1] not in _ACCOUNTS.values():
            return error(404, 20404, f"The requested resource {request.route} was not found")
        match request.method, path[2]:
            case "POST", None:
                return self._create(request)
            case "GET", None:
                return self._list(request.query, path[1])
            case "GET", sid:
                return self._fetch(str(sid))
        return error(405, 20004, "Method not allowed")

    def _account(self, request: Request, sid: str) -> Reply:
        """Return the response to a request for the account. An API key has access to everything except the
        account."""
        if request.login != (sid, AUTH_TOKEN):
            return error(401, 20003, "Authentication Error - invalid username")
        if request.method != "GET":
            return error(405, 20004, "Method not allowed")
        return json_reply(HTTPStatus.OK, account_as_json(self.network.clock()))

    def _create(self, request: Request) -> Reply:
        try:
            order = _order(request)
        except ValueError:
            return error(400, 20001, "ValidityPeriod is not a number")
        wrong = fault(order)
        if wrong is not None:
            return error(*wrong)
        if (row := ROWS.get(number_code(order.to))) is not None:
            return error(400, int(row.code), row.words)
        try:
            sms = self.network.submit(order)
        except SubmitRefused as refused:
            status, code, message = REFUSALS[refused.why]
            return error(status, code, message.format(to=order.to))
        self.on_accepted(sms)
        return self._answer(sms)

    def _answer(self, sms: SimulatedSms) -> Reply:
        match answer_to(sms.order.to, sms.attempt):
            case "lost":
                raise NoAnswer
            case "error":
                return error(*REFUSALS["error"])
        return json_reply(HTTPStatus.CREATED, as_json(sms, sms.created))

    def _fetch(self, sid: str) -> Reply:
        inbound = self.network.received(sid)
        if inbound is not None:
            changes = {"direction": "inbound", "status": "received"}
            return json_reply(HTTPStatus.OK, as_json(inbound, inbound.created + 1) | changes)
        sms = self.network.message(sid)
        if sms is None:
            return error(404, 20404, f"The requested resource /Messages/{sid}.json was not found")
        return json_reply(HTTPStatus.OK, as_json(sms, self.network.clock()))

    def _list(self, query: Mapping[str, str], account: str) -> Reply:
        moment = self.network.clock()
        try:
            size, page = int(query.get("PageSize", PAGE_SIZE)), int(query.get("Page", 0))
        except ValueError:
            return error(400, 20001, "A parameter of the list is not valid")
        messages = self.network.messages()
        if account == REDACTING_SID:
            messages = [_redacted(sms) if sms.sent_at(moment) else sms for sms in messages]
        matching = [sms for sms in messages if query.get("To", sms.order.to) == sms.order.to]
        if not 1 <= size <= MAX_PAGE_SIZE:
            return error(400, 20007, "Page size too large")
        start = _after(matching, query["PageToken"]) if "PageToken" in query else page * size
        listed = matching[start : start + size]
        goes_on = listed and start + size < len(matching)
        return json_reply(
            HTTPStatus.OK,
            {
                "end": page * size + max(len(listed) - 1, 0),
                "first_page_uri": _page_uri(query, 0, size),
                "messages": [as_json(sms, moment) for sms in listed],
                "next_page_uri": _page_uri(query, page + 1, size, f"PA{listed[-1].sid}") if goes_on else None,
                "page": page,
                "page_size": size,
                "previous_page_uri": _page_uri(query, page - 1, size) if page else None,
                "start": page * size,
                "uri": _page_uri(query, page, size),
            },
        )


def _redacted(sms: SimulatedSms) -> SimulatedSms:
    return replace(sms, order=replace(sms.order, to=f"{sms.order.to[:-4]}XXXX", body=""))


def _after(listed: list[SimulatedSms], token: str) -> int:
    """Return the index after the message that a page token names."""
    sids = [sms.sid for sms in listed]
    return sids.index(token[2:]) + 1 if token[2:] in sids else len(sids)


def _order(request: Request) -> SmsOrder:
    form = request.form
    validity = form.get("ValidityPeriod")
    return SmsOrder(
        form.get("To", ""),
        form.get("From", ""),
        form.get("MessagingServiceSid", ""),
        form.get("Body", ""),
        tuple(parse_qs(request.body.decode(), keep_blank_values=True).get("MediaUrl", ())),
        # Twilio evaluates the URL's fragment itself, and does not send it.
        urldefrag(form.get("StatusCallback", "")).url,
        None if validity is None else int(validity),
    )


def as_json(sms: SimulatedSms, moment: float) -> dict[str, Any]:
    status, sent = sms.status(moment), sms.sent_at(moment)
    waiting = status == "accepted"  # the Messaging Service has not chosen a sender's number yet
    error = sms.error if status in {"undelivered", "failed"} else None
    uri = f"{URI}/{sms.sid}"
    return {
        "account_sid": ACCOUNT_SID,
        "api_version": VERSION,
        "body": sms.order.body,
        "date_created": _rfc2822(sms.created),
        "date_sent": None if sent is None else _rfc2822(sent),
        "date_updated": _rfc2822(sms.created if sent is None else sent),
        "direction": "outbound-api",
        "error_code": error,
        "error_message": None if error is None else EVENTS[str(error)].words,
        "from": None if waiting else sms.number,
        "messaging_service_sid": sms.order.service or None,
        "num_media": str(len(sms.order.media_urls)),
        "num_segments": "0" if waiting else str(max(1, segments_of(sms.order.body).count)),
        "price": None,
        "price_unit": "USD",
        "sid": sms.sid,
        "status": status,
        "subresource_uris": {"media": f"{uri}/Media.json"},
        "to": sms.order.to,
        "uri": f"{uri}.json",
    }


def account_as_json(moment: float) -> dict[str, Any]:
    """Return the account in the form of the API: https://www.twilio.com/docs/iam/api/account."""
    uri = f"/{VERSION}/Accounts/{ACCOUNT_SID}"
    return {
        "auth_token": AUTH_TOKEN,
        "date_created": _rfc2822(0),
        "date_updated": _rfc2822(moment),
        "friendly_name": "Mailroom",
        "owner_account_sid": ACCOUNT_SID,
        "sid": ACCOUNT_SID,
        "status": "active",
        "subresource_uris": {"messages": f"{uri}/Messages.json"},
        "type": "Full",
        "uri": f"{uri}.json",
    }


def _rfc2822(seconds: float) -> str:
    """Return epoch seconds, rounded down, as text such as `Thu, 24 Aug 2023 05:01:45 +0000`."""
    return format_datetime(datetime.fromtimestamp(int(seconds), UTC))


def fault(order: SmsOrder) -> Error | None:
    if not order.to:
        return 400, 21604, "A 'To' phone number is required."
    if not E164.fullmatch(order.to):
        return 400, 21211, f"Invalid 'To' Phone Number: {order.to}"
    if not order.sender and not order.service:
        return 400, 21603, "A 'From' phone number is required."
    if order.sender and not E164.fullmatch(order.sender):
        return 400, 21212, f"Invalid From Number (caller ID): {order.sender}"
    return _content_fault(order)


def _content_fault(order: SmsOrder) -> Error | None:
    if not order.body and not order.media_urls:
        return 400, 21602, "Message body is required."
    if len(order.body) > MAX_BODY:
        return 400, 21617, f"The concatenated message body exceeds the {MAX_BODY} character limit"
    if len(order.media_urls) > MAX_MEDIA or not all(map(_is_url, order.media_urls)):
        return 400, 21620, "Invalid media URL(s)"
    if order.callback and not _is_url(order.callback):
        return 400, 21609, f"The StatusCallback URL {order.callback} is not a valid URL."
    if order.validity_seconds is not None and not 1 <= order.validity_seconds <= MAX_VALIDITY:
        return 400, 20001, f"ValidityPeriod must be between 1 and {MAX_VALIDITY}"
    return None


def _is_url(text: str) -> bool:
    """Return whether the text is a URL that Twilio accepts: its host may not contain underscores."""
    return re.fullmatch(r"https?://[A-Za-z0-9.:-]+(?:[/?]\S*)?", text) is not None


def _page_uri(query: Mapping[str, str], page: int, size: int, token: str = "") -> str:
    """Return the URI of a page of a list. With the token, the page stays the same while newer messages are
    added."""
    parameters = {
        name: value for name, value in query.items() if name not in {"Page", "PageToken", "PageSize"}
    }
    parameters |= {"PageSize": str(size), "Page": str(page)}
    return f"{URI}.json?{urlencode(parameters | ({'PageToken': token} if token else {}))}"


def error(status: int, code: int, message: str) -> Reply:
    body = {
        "code": code,
        "message": message,
        "more_info": f"https://www.twilio.com/docs/errors/{code}",
        "status": status,
    }
    return json_reply(status, body)
