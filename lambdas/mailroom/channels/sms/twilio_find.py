"""Which of Twilio's messages is the one that a lost answer left behind.

Twilio keeps nothing of ours with a message but its text, which it does not always keep as it was: a trial
account's begins with a sentence, and Smart Encoding writes many characters in GSM-7's own. Texts are compared
with those written in one way (and by NFKC, which knows a full-width letter or an ellipsis), and all white
space as one space. Whatever else differs, were it a point between two digits, makes another text.
"""

import math
import unicodedata
from collections.abc import Container, Iterable
from typing import Any

from mailroom.channels.sms.provider import SmsRequest
from mailroom.http.provider import epoch, text_of
from mailroom.message.outcome import Evidence, NotFound, Sent, Unknowable

_TRIAL = "Sent from your Twilio trial account - "

# What Smart Encoding replaces and NFKC does not, or not alike: all quotes are one class here, and all dashes.
# https://www.twilio.com/docs/messaging/services/smart-encoding-char-list
_ALIKE = {
    "'": '"`´«»‘’‛“”„‟ʹʺʻʼʽˈˊˋˮ❛❜❝❞〝〞',  # noqa: RUF001
    "-": "‐‒–—―−⁃⎼⎽",  # noqa: RUF001
    "<": "‹",  # noqa: RUF001
    ">": "›",  # noqa: RUF001
    "_": "‗",
    "/": "÷⁄∕⧸",  # noqa: RUF001
    "\\": "⧵⧹",  # noqa: RUF001
    "|": "∣⎸⎹⎜⎟⏐",  # noqa: RUF001
    "*": "•⁎∗⊛✢✣✤✥✱✲✳✺✻✼✽❃❉❊❋⧆",  # noqa: RUF001
    "!": "ǃ",  # noqa: RUF001
    ",": "‚、",  # noqa: RUF001
    ".": "。",
    ":": "ː˸⦂꞉",  # noqa: RUF001
    ";": "⁏",
    "(": "❨❪⟮⦅",  # noqa: RUF001
    ")": "❩❫⟯⦆",  # noqa: RUF001
    "{": "❴",  # noqa: RUF001
    "}": "❵",  # noqa: RUF001
    "+": "˖",
    "^": "ˆ",  # noqa: RUF001
    "~": "˜˷∼",  # noqa: RUF001
    "": "\u200b\u2060\ufeff",
}
_TABLE = {ord(each): kept for kept, several in _ALIKE.items() for each in several}
_CAPITALS = ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "ABCDEFGHIJKLMNOPRSTUVWYZ")
_TABLE |= {ord(small): capital for small, capital in zip(*_CAPITALS, strict=True)}


def created(message: dict[str, Any]) -> float:
    """When Twilio made it, in epoch seconds; it writes whole ones. Raises Unclear."""
    return epoch(text_of(message, "date_created"))


def evidence(
    request: SmsRequest, messages: Iterable[dict[str, Any]], since: float, known: Container[str]
) -> Evidence:
    """The oldest of the messages that is this one; two of them would mean that it was sent twice.

    Unknowable where one could be it all the same: its text was removed (an account may keep none), or ours is
    a template's, whose wording may be another one since.
    """
    oldest = math.floor(since)
    candidates = [each for each in messages if _could_be(each, request, oldest, known)]
    ours = [each for each in candidates if same_text(request.text, str(each.get("body") or ""))]
    if ours:
        first = min(reversed(ours), key=created)  # the list is newest first, also within a second
        return Sent(text_of(first, "sid"), request.facts)
    if not request.exact:
        return Unknowable() if candidates else NotFound()
    removed = request.text and any(not each.get("body") for each in candidates)
    return Unknowable() if removed else NotFound()


def same_text(ours: str, theirs: str) -> bool:
    """Whether what Twilio shows is what was sent, as far as Twilio keeps it."""
    return _plain(theirs) in {_plain(ours), _plain(_TRIAL + ours)}


def _plain(text: str) -> str:
    # Twice: NFKC makes two characters of an acute accent, and a fraction slash of a fraction.
    text = unicodedata.normalize("NFKC", text.translate(_TABLE)).translate(_TABLE)
    return " ".join(text.split())


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
