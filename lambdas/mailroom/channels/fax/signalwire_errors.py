"""What SignalWire's errors say, and whose fault they are."""

import re

from mailroom.http.https import Unclear
from mailroom.http.provider import body_of
from mailroom.redaction import discreet

_OUR_CODES = {
    "4001",  # the balance
    "10001",  # not enabled for the space
    "10002",  # a trial account
    "10004",  # the project
    "20003",  # permission denied
    "20005",  # the account is not active
    "21210",  # From not verified
    "21212",  # From invalid
    "21213",  # From missing
    "21215",  # the account may not call there
    "21606",  # From is not the account's
}
_OUR_WORDS = re.compile(
    r"\bFrom\b(?! the\b)|\bfrom (?:phone )?number|\bcaller id\b|\b(?:Ttl|Quality|StoreMedia)\b"
    r"|(?i:\baccount\b|\bproject\b|\bbalance\b)"
)


def reason_of(status: int, text: str) -> tuple[str, bool]:
    """A sentence for the ledger and the log, and whether the fault is our account's or our settings'.

    The Compatibility API's errors have `code` and `message`; the space's own come as a list, with `detail`.
    """
    try:
        body = body_of(status, text)
    except Unclear:
        body = {}
    errors = body.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else body
    said = first if isinstance(first, dict) else {}
    code = str(said.get("code") or "")
    words = str(said.get("message") or said.get("detail") or "no reason given")
    ours = code in _OUR_CODES or _OUR_WORDS.search(words) is not None
    return f"SignalWire answered {status}{f' ({code})' if code else ''}: {discreet(words)}", ours
