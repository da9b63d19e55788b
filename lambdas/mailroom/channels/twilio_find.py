"""Which of Twilio's messages is the one that a lost answer left behind.

Twilio keeps nothing of ours with a message but its text, which it does not always keep as it was: a trial
account's begins with a sentence, and Smart Encoding writes quotes, dashes and spaces in GSM-7's own
characters. Letters and digits stay. So texts are compared by these alone, after NFKC, which writes what
Unicode has several characters for (an ellipsis, a ½, a full-width letter) in one way.
"""

import math
import unicodedata
from collections.abc import Container, Iterable
from typing import Any

from mailroom.channels.sms_provider import SmsRequest
from mailroom.http_answers import epoch, text_of
from mailroom.outcome import Evidence, NotFound, Sent, Unknowable

_TRIAL = "Sent from your Twilio trial account - "


def created(message: dict[str, Any]) -> float:
    """When Twilio made it, in epoch seconds; it writes whole ones. Raises Unclear."""
    return epoch(text_of(message, "date_created"))


def evidence(
    request: SmsRequest, messages: Iterable[dict[str, Any]], since: float, known: Container[str]
) -> Evidence:
    """The oldest of the messages that is this one; two of them would mean that it was sent twice.

    Unknowable where one had its text removed (an account may keep none): it could be this one.
    """
    oldest = math.floor(since)
    candidates = [each for each in messages if _could_be(each, request, oldest, known)]
    ours = [each for each in candidates if same_text(request.text, str(each.get("body") or ""))]
    if ours:
        first = min(reversed(ours), key=created)  # the list is newest first, also within a second
        return Sent(text_of(first, "sid"), request.facts)
    removed = request.text and any(not each.get("body") for each in candidates)
    return Unknowable() if removed else NotFound()


def same_text(ours: str, theirs: str) -> bool:
    """Whether what Twilio shows is what was sent, as far as Twilio keeps it."""
    return _letters(theirs) in {_letters(ours), _letters(_TRIAL + ours)}


def _letters(text: str) -> str:
    letters = "".join(each for each in unicodedata.normalize("NFKC", text) if each.isalnum())
    # A text without any, of emoji alone, would else be like every other one.
    return letters or "".join(text.split())


def _could_be(message: dict[str, Any], request: SmsRequest, oldest: int, known: Container[str]) -> bool:
    # What the answer leaves out cannot rule a message out. An SID says whether it has media.
    sid = text_of(message, "sid")
    return (
        sid not in known
        and sid.startswith("MM" if request.media else "SM")
        and message.get("direction") != "inbound"
        and message.get("to", request.to) == request.to
        and created(message) >= oldest
    )
