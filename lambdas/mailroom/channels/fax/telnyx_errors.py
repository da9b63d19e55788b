"""What Telnyx's errors and failure reasons say, and whose fault they are."""

import re
from typing import Any

from mailroom.channels.fax.provider import Undelivered
from mailroom.http.https import Unclear
from mailroom.http.provider import body_of
from mailroom.redaction import discreet

_STATUSES = {"user_busy": "busy", "receiver_no_answer": "no-answer", "sender_canceled": "canceled"}
_GIVE_UP = {
    "page_count_limit_exceeded",
    "receiver_invalid_number_format",
    "receiver_unallocated_number",
    "sender_canceled",  # by us, or by somebody at the provider's console
    "unverified_destination_not_allowed",
}
_GIVE_UP_PREFIXES = ("destination_invalid", "destination_not_in_", "file_")
"""All other reasons, also ones that Telnyx adds one day, are worth another attempt: a page too many costs
less than a fax that was given up for no cause. So is `account_disabled`: it is no fault of the fax, and its
next submit is refused, which rings an alarm."""

_THE_MESSAGES_OWN = {"to", "media_url"}
_OUR_CODES = ("10009", "10010", "20")
"""Authentication, authorization, and all that Telnyx says of accounts."""
_OUR_WORDS = re.compile(
    r"['\"`]from['\"`]|\bfrom (?:phone )?number|\bcaller id|\bconnection_?id\b|\bconnection\b|\baccount\b"
    r"|\boutbound[ _](?:voice[ _])?profile|\bbalance\b"
)
_THEIR_WORDS = re.compile(r"\bmedia|\burl\b|\bdownload|['\"`]to['\"`]|\bto number\b|\bdestination\b")


def undelivered(reason: str) -> Undelivered:
    """What a failure reason means: its status in the other provider's words where these have one."""
    again = reason not in _GIVE_UP and not reason.startswith(_GIVE_UP_PREFIXES)
    shown = discreet(reason)
    return Undelivered(_STATUSES.get(reason, shown), again, detail=shown)


def reason_of(status: int, text: str) -> tuple[str, bool]:
    """A sentence for the ledger and the log, and whether the fault is our account's or our settings'."""
    errors = _errors(status, text)
    said = [
        f"{each.get('code', '')}: {each.get('detail') or each.get('title') or ''}".strip() for each in errors
    ]
    shown = discreet("; ".join(said) or "no reason given")
    return f"Telnyx answered {status}: {shown}", any(_is_ours(each) for each in errors)


def _errors(status: int, text: str) -> list[dict[str, Any]]:
    try:
        errors = body_of(status, text).get("errors")
    except Unclear:
        return []
    return [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []


def _is_ours(error: dict[str, Any]) -> bool:
    """All of a request but `to` and `media_url` comes from our settings."""
    source = error.get("source")
    pointer = str(source.get("pointer") or source.get("parameter") or "") if isinstance(source, dict) else ""
    if pointer:
        return pointer.strip("/").split("/")[-1] not in _THE_MESSAGES_OWN
    words = f"{error.get('title', '')} {error.get('detail', '')}".lower()
    if str(error.get("code", "")).startswith(_OUR_CODES):
        return True
    return _OUR_WORDS.search(words) is not None and _THEIR_WORDS.search(words) is None
