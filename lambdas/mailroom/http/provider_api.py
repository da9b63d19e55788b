"""Requests to providers' APIs, which are never repeated, and what their responses prove about a message."""

import json
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from mailroom.clock import Clock
from mailroom.errors import InvalidRequest, OutcomeUnknown
from mailroom.http.https import Answer, Deadline, HttpClient
from mailroom.http.url_policy import DEFAULT_PORTS, UrlPolicy
from mailroom.message.message import encode
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Retry

CONNECT_SECONDS = 3.0
_WHOLE_DATE = re.compile(r"(?a:\d{4}-\d\d-\d\d[T ]|\w{3}, \d\d? \w{3} \d{4} )(?a:\d\d:\d\d:\d\d)")
# A provider's URL comes from the stage's settings, so any address is allowed, such as one on a developer's
# machine.
_ANYWHERE = UrlPolicy(schemes=DEFAULT_PORTS, ports=(), networks=("0.0.0.0/0", "::/0"))


class ProviderApi:
    """Client of a provider's HTTP API. Each request has the `headers`, and takes at most `seconds`, including
    its response."""

    def __init__(
        self, seconds: float, headers: Mapping[str, str] | None = None, monotonic: Clock = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._headers = {
            "User-Agent": "mailroom",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # a compressed response could not be read here
            **(headers or {}),
        }
        self._monotonic = monotonic
        self._client = HttpClient(connect_seconds=CONNECT_SECONDS)

    def get(self, url: str, params: Mapping[str, object] | None = None) -> Answer:
        """Return the response to a GET. Raises RequestFailed."""
        return self.request("GET", url, params=params)

    def post(self, url: str, json: Mapping[str, Any] | None = None) -> Answer:
        """Return the response to a POST of JSON, or of an empty body. Raises RequestFailed."""
        if json is None:
            return self.request("POST", url)
        body = encode(json).encode()
        return self.request("POST", url, headers={"Content-Type": "application/json"}, body=body)

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """Return the response to a request of any method. Raises RequestFailed."""
        deadline = Deadline(self._seconds, self._monotonic)
        query = f"?{urlencode(params, doseq=True)}" if params else ""
        try:
            target = _ANYWHERE.check(url + query, min(CONNECT_SECONDS, self._seconds))
            return self._client.request(method, target, {**self._headers, **(headers or {})}, body, deadline)
        except InvalidRequest as fault:
            # The text of `fault` is a predicate of the word "URL", but callers put the provider's name before
            # this error's text.
            raise InvalidRequest(f"cannot be called: {fault}") from None


def body_of(status: int, text: str) -> dict[str, Any]:
    """Return the JSON object in a response. Raises OutcomeUnknown if the text is not a JSON object."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise OutcomeUnknown(f"the response ({status}) is not a JSON object")
    return body


def object_in(status: int, text: str) -> dict[str, Any]:
    """Return the JSON object in an error response, or {} if the text is not a JSON object."""
    try:
        return body_of(status, text)
    except OutcomeUnknown:
        return {}


def text_of(answer: dict[str, Any], name: str) -> str:
    """Return the text in the required field `name` of a response. Raises OutcomeUnknown if it is missing."""
    value = answer.get(name)
    if not isinstance(value, str) or not value:
        raise OutcomeUnknown(f"the response has no {name}")
    return value


def refusal(status: int, headers: Mapping[str, str], reason: str, *, own: bool = False) -> Outcome:
    """Classify a response outside 2xx to a submit.

    `own` means that the error's code, or its code and field, shows that the message itself is at fault. Any
    other refusal is treated as a fault of the configuration: there are many codes for credentials, accounts
    and settings, and new ones are added. If such a code made a message fail, the message would be lost
    without an alarm. Raises OutcomeUnknown for a response that does not prove that the message was not sent.
    """
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Retry(reason, retry_after(headers))
    if 400 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT:
        return Rejected(reason) if own else Misconfigured(reason)
    raise OutcomeUnknown(reason)  # the provider may have acted before it redirected


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the wait in seconds that a provider requests in its headers, or 0 if there is none."""
    return seconds_until(headers.get("retry-after") or headers.get("x-ratelimit-reset", ""), headers)


def seconds_until(text: str, headers: Mapping[str, str], moment: float | None = None) -> float:
    """Return the wait in seconds in a value such as that of Retry-After, or 0 if the value is invalid.

    If the value is a date, the wait is counted from the response's Date, because the provider's clock may
    differ. If Date is missing, it is counted from `moment`, the present time in epoch seconds.
    """
    if re.fullmatch(r" *[0-9]{1,9} *", text):
        return float(text)
    try:
        sent = moment if moment is not None and "date" not in headers else epoch(headers.get("date", ""))
        return max(0.0, epoch(text) - sent)
    except OutcomeUnknown:
        return 0.0


def epoch(text: str) -> float:
    """Return the epoch seconds of a date in the form of ISO 8601 or RFC 9110. Without an offset the date is
    UTC. Raises OutcomeUnknown, also if a part of the date is missing or masked: Python's parsers would return
    midnight or another year, so a look-up would take the message for an older one."""
    for read in (datetime.fromisoformat, parsedate_to_datetime) if _WHOLE_DATE.match(text) else ():
        try:
            date = read(text)
        except (ValueError, OverflowError):
            continue
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    raise OutcomeUnknown("the response has an invalid date")
