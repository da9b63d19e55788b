"""What a provider's HTTP answers say, and what they prove."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from mailroom.http.once import Unclear
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Retry


def body_of(status: int, text: str) -> dict[str, Any]:
    """The JSON object of an answer. Raises Unclear where there is none."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Unclear(f"an answer ({status}) that is no JSON object")
    return body


def text_of(answer: dict[str, Any], name: str) -> str:
    """A value that has to be there. Raises Unclear where it is not."""
    value = answer.get(name)
    if not isinstance(value, str) or not value:
        raise Unclear(f"an answer without {name}")
    return value


def refusal(status: int, headers: Mapping[str, str], reason: str, *, ours: bool) -> Outcome:
    """What an answer outside 2xx to a submit proves; `ours`: the reason names something of ours.

    Raises Unclear for one that does not prove that nothing was sent.
    """
    if status == 429:
        return Retry(reason, retry_after(headers))
    if status in {400, 422} and not ours:
        return Rejected(reason)
    if 400 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT:
        return Misconfigured(reason)  # credentials, the account, the address: the same for every message
    raise Unclear(reason)  # a redirect may well follow what was done


def retry_after(headers: Mapping[str, str]) -> float:
    """The wait that an answer asks for, in seconds; 0 where it asks for none that can be understood."""
    text = (headers.get("Retry-After") or headers.get("x-ratelimit-reset") or "").strip()
    if re.fullmatch(r"\d{1,9}", text):
        return float(text)
    try:
        # By the answer's own clock: ours may differ.
        return max(0.0, epoch(text) - epoch(headers.get("Date", "")))
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
