"""Requests to a provider's API: each goes out once, and its answer says what it proves."""

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
from mailroom.errors import Unsendable
from mailroom.http.https import Answer, Deadline, HttpClient, NotSent, Unclear
from mailroom.http.url_policy import DEFAULT_PORTS, BadUrl, Unresolved, UrlPolicy
from mailroom.message.message import encode
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Retry

CONNECT_SECONDS = 3.0
# The address of a provider stands in our settings, so it may be anywhere: on a developer's machine, too.
_ANYWHERE = UrlPolicy(schemes=DEFAULT_PORTS, ports=(), networks=("0.0.0.0/0", "::/0"))


class ProviderApi:
    """A provider's HTTP API, asked with the same `headers` each time. A request takes at most `seconds`, with
    the whole of its answer."""

    def __init__(
        self, seconds: float, headers: Mapping[str, str] | None = None, monotonic: Clock = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._headers = {
            "User-Agent": "mailroom",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # nothing here unpacks an answer
            **(headers or {}),
        }
        self._monotonic = monotonic
        self._client = HttpClient(connect_seconds=CONNECT_SECONDS)

    def get(self, url: str, params: Mapping[str, object] | None = None) -> Answer:
        """The answer to a GET. Raises NotSent, Unsendable or Unclear."""
        return self.request("GET", url, params=params)

    def post(self, url: str, json: Mapping[str, Any] | None = None) -> Answer:
        """The answer to a POST of JSON; None: of nothing. Raises NotSent, Unsendable or Unclear."""
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
        """The answer to any request. Raises NotSent, Unsendable or Unclear."""
        deadline = Deadline(self._seconds, self._monotonic)
        query = f"?{urlencode(params, doseq=True)}" if params else ""
        try:
            target = _ANYWHERE.check(url + query, min(CONNECT_SECONDS, self._seconds))
            return self._client.request(method, target, {**self._headers, **(headers or {})}, body, deadline)
        except Unresolved as trouble:
            raise NotSent(f"cannot be reached: {trouble}") from None
        except (BadUrl, ValueError) as fault:  # the last: a header that cannot be one
            raise Unsendable(f"cannot be asked: {fault}") from None


def body_of(status: int, text: str) -> dict[str, Any]:
    """The JSON object of an answer. Raises Unclear for anything else."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Unclear(f"an answer ({status}) that is no JSON object")
    return body


def object_in(status: int, text: str) -> dict[str, Any]:
    """The JSON object that a refusal comes with; {}: with none."""
    try:
        return body_of(status, text)
    except Unclear:
        return {}


def text_of(answer: dict[str, Any], name: str) -> str:
    """A value that has to be there. Raises Unclear where it is not."""
    value = answer.get(name)
    if not isinstance(value, str) or not value:
        raise Unclear(f"an answer without {name}")
    return value


def refusal(status: int, headers: Mapping[str, str], reason: str, *, own: bool = False) -> Outcome:
    """Classify a response outside 2xx to a submit.

    `own`: its code, or its code and field, is on the provider's list of the message's own faults. Every other
    refusal is ours: codes for credentials, accounts and settings are many and new ones come, and a message
    that ends as failed because of one is lost in silence. Raises Unclear for a response that does not prove
    that nothing was sent.
    """
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Retry(reason, retry_after(headers))
    if 400 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT:
        return Rejected(reason) if own else Misconfigured(reason)
    raise Unclear(reason)  # a redirect may well follow what was done


def retry_after(headers: Mapping[str, str]) -> float:
    """The wait that a provider asks for, in seconds; 0 where its words cannot be understood."""
    return seconds_until(headers.get("retry-after") or headers.get("x-ratelimit-reset", ""), headers)


def seconds_until(text: str, headers: Mapping[str, str], now: float | None = None) -> float:
    """The wait that a value like that of Retry-After means: seconds, or a date by the answer's own clock, as
    ours may differ; `now` is for an answer without one. 0 for what cannot be understood."""
    if re.fullmatch(r" *[0-9]{1,9} *", text):
        return float(text)
    try:
        sent = now if now is not None and "date" not in headers else epoch(headers.get("date", ""))
        return max(0.0, epoch(text) - sent)
    except Unclear:
        return 0.0


def epoch(text: str) -> float:
    """Epoch seconds of a date as providers write it: ISO 8601 or RFC 9110; UTC where it names no zone."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(text)
        except (ValueError, OverflowError):
            continue
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    raise Unclear("a date that cannot be read")
