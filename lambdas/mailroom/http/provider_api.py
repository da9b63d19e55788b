"""Requests to a provider's API, each sent once, and what their responses prove."""

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
# A provider's address comes from our settings, so it may be anywhere, such as on a developer's machine.
_ANYWHERE = UrlPolicy(schemes=DEFAULT_PORTS, ports=(), networks=("0.0.0.0/0", "::/0"))


class ProviderApi:
    """A provider's HTTP API. Each request has `headers`, and takes at most `seconds` with its response."""

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
            # The text of `fault` would follow the word "URL", but this error follows the provider's name, so
            # the text gets a beginning of its own.
            raise InvalidRequest(f"cannot be asked: {fault}") from None


def body_of(status: int, text: str) -> dict[str, Any]:
    """Return the JSON object in a response. Raises OutcomeUnknown for any other text."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise OutcomeUnknown(f"an answer ({status}) that is no JSON object")
    return body


def object_in(status: int, text: str) -> dict[str, Any]:
    """Return the JSON object in a refusal, or an empty object if the text is not one."""
    try:
        return body_of(status, text)
    except OutcomeUnknown:
        return {}


def text_of(answer: dict[str, Any], name: str) -> str:
    """Return a required text. Raises OutcomeUnknown if it is missing."""
    value = answer.get(name)
    if not isinstance(value, str) or not value:
        raise OutcomeUnknown(f"an answer without {name}")
    return value


def refusal(status: int, headers: Mapping[str, str], reason: str, *, own: bool = False) -> Outcome:
    """Classify a response outside 2xx to a submit.

    `own` means that the code, or the code and the field, is on the provider's list of faults of the message.
    Every other refusal is a fault of ours: there are many codes for credentials, accounts and settings, new
    codes come, and a message that fails because of one is lost in silence. Raises OutcomeUnknown for a
    response that does not prove that the message was not sent.
    """
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Retry(reason, retry_after(headers))
    if 400 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT:
        return Rejected(reason) if own else Misconfigured(reason)
    raise OutcomeUnknown(reason)  # the provider may have acted before it redirected


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the wait in seconds that a provider requests, or 0 if its headers cannot be read."""
    return seconds_until(headers.get("retry-after") or headers.get("x-ratelimit-reset", ""), headers)


def seconds_until(text: str, headers: Mapping[str, str], moment: float | None = None) -> float:
    """Convert a value such as that of Retry-After to a wait in seconds, or 0 if it cannot be read.

    A date counts from the Date of the response, because our clock may differ. `moment`, the epoch seconds of
    our clock, replaces a missing Date.
    """
    if re.fullmatch(r" *[0-9]{1,9} *", text):
        return float(text)
    try:
        sent = moment if moment is not None and "date" not in headers else epoch(headers.get("date", ""))
        return max(0.0, epoch(text) - sent)
    except OutcomeUnknown:
        return 0.0


def epoch(text: str) -> float:
    """Return the epoch seconds of a date of ISO 8601 or RFC 9110, by default UTC. Raises OutcomeUnknown."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = read(text)
        except (ValueError, OverflowError):
            continue
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    raise OutcomeUnknown("a date that cannot be read")
