"""Twilio's Messages API on the wire: what a message looks like, what is refused, how a list is filtered."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any
from urllib.parse import urlencode

from local.providers.fax_wire import epoch, json_reply
from local.providers.http import Reply
from local.providers.sms_record import Order, Sms
from local.providers.sms_segments import segments
from local.providers.twilio_account import ACCOUNT_SID, AUTH_TOKEN

VERSION = "2010-04-01"
URI = f"/{VERSION}/Accounts/{ACCOUNT_SID}/Messages"
E164 = re.compile(r"\+[1-9]\d{6,14}")
MAX_BODY = 1600
MAX_MEDIA = 10
MAX_VALIDITY = 36_000

Error = tuple[int, int, str]
"""HTTP status, Twilio's code, sentence."""
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
DELIVERY_ERRORS = {
    30003: "Unreachable destination handset",
    30005: "Unknown destination handset",
    30006: "Landline or unreachable carrier",
    30008: "Unknown error",
}


def as_json(sms: Sms, now: float) -> dict[str, Any]:
    """A message as the API shows it."""
    status, sent = sms.status(now), sms.sent_at(now)
    waiting = status == "accepted"  # the service has not chosen its number yet
    error = sms.error if status in {"undelivered", "failed"} else None
    uri = f"{URI}/{sms.sid}"
    return {
        "account_sid": ACCOUNT_SID,
        "api_version": VERSION,
        "body": sms.order.body,
        "date_created": rfc2822(sms.created),
        "date_sent": None if sent is None else rfc2822(sent),
        "date_updated": rfc2822(sms.created if sent is None else sent),
        "direction": "outbound-api",
        "error_code": error,
        "error_message": None if error is None else DELIVERY_ERRORS[error],
        "from": None if waiting else sms.number,
        "messaging_service_sid": sms.order.service or None,
        "num_media": str(len(sms.order.media_urls)),
        "num_segments": "0" if waiting else str(segments(sms.order.body)),
        "price": None,
        "price_unit": "USD",
        "sid": sms.sid,
        "status": status,
        "subresource_uris": {"media": f"{uri}/Media.json"},
        "to": sms.order.to,
        "uri": f"{uri}.json",
    }


def account_as_json(now: float) -> dict[str, Any]:
    """The account as the API shows it: https://www.twilio.com/docs/iam/api/account."""
    uri = f"/{VERSION}/Accounts/{ACCOUNT_SID}"
    return {
        "auth_token": AUTH_TOKEN,
        "date_created": rfc2822(0),
        "date_updated": rfc2822(now),
        "friendly_name": "Mailroom",
        "owner_account_sid": ACCOUNT_SID,
        "sid": ACCOUNT_SID,
        "status": "active",
        "subresource_uris": {"messages": f"{uri}/Messages.json"},
        "type": "Full",
        "uri": f"{uri}.json",
    }


def rfc2822(seconds: float) -> str:
    """Epoch seconds as `Thu, 24 Aug 2023 05:01:45 +0000`: whole seconds."""
    return format_datetime(datetime.fromtimestamp(int(seconds), UTC))


def fault(order: Order) -> Error | None:
    """What is wrong with a submit."""
    return _wrong_numbers(order) or _wrong_content(order)


def _wrong_numbers(order: Order) -> Error | None:
    if not order.to:
        return 400, 21604, "A 'To' phone number is required."
    if not E164.fullmatch(order.to):
        return 400, 21211, f"Invalid 'To' Phone Number: {order.to}"
    if not order.sender and not order.service:
        return 400, 21603, "A 'From' phone number is required."
    if order.sender and not E164.fullmatch(order.sender):
        return 400, 21212, f"Invalid From Number (caller ID): {order.sender}"
    return None


def _wrong_content(order: Order) -> Error | None:
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
    """Twilio wants a host without underscores."""
    return re.fullmatch(r"https?://[A-Za-z0-9.:-]+(?:[/?]\S*)?", text) is not None


def matches(sms: Sms, query: Mapping[str, str], now: float) -> bool:
    """Whether a list with this query shows the message. Raises ValueError for a date that is none.

    Of the dates Twilio filters by the one of sending alone, which a queued message lacks.
    """
    if query.get("To", sms.order.to) != sms.order.to or query.get("From", sms.number) != sms.number:
        return False
    at = sms.sent_at(now)
    day = None if at is None else datetime.fromtimestamp(at, UTC).date().isoformat()
    return (
        ("DateSent" not in query or query["DateSent"][:10] == day)
        and ("DateSent>" not in query or (at is not None and int(at) >= epoch(query["DateSent>"])))
        and ("DateSent<" not in query or (at is not None and int(at) <= epoch(query["DateSent<"])))
    )


def page_uri(query: Mapping[str, str], page: int, size: int, token: str = "") -> str:
    """Where a page of a list is. The token holds its place while newer messages come in."""
    shown = {name: value for name, value in query.items() if name not in {"Page", "PageToken", "PageSize"}}
    shown |= {"PageSize": str(size), "Page": str(page)}
    return f"{URI}.json?{urlencode(shown | ({'PageToken': token} if token else {}))}"


def listed(
    shown: Sequence[Sms], query: Mapping[str, str], page: int, size: int, more: bool, now: float
) -> Any:
    """One page of a list."""
    start = page * size
    after = page_uri(query, page + 1, size, f"PA{shown[-1].sid}") if shown and more else None
    return {
        "end": start + max(len(shown) - 1, 0),
        "first_page_uri": page_uri(query, 0, size),
        "messages": [as_json(sms, now) for sms in shown],
        "next_page_uri": after,
        "page": page,
        "page_size": size,
        "previous_page_uri": page_uri(query, page - 1, size) if page else None,
        "start": start,
        "uri": page_uri(query, page, size),
    }


def error(status: int, code: int, message: str) -> Reply:
    """An error's answer."""
    body = {
        "code": code,
        "message": message,
        "more_info": f"https://www.twilio.com/docs/errors/{code}",
        "status": status,
    }
    return json_reply(status, body)
