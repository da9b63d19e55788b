"""Segments of a text, by which a text message is billed.

A text is sent in GSM-7, or in UCS-2 if GSM-7 lacks at least one of its characters. A segment has 140 octets.
In each of several segments, 6 of the octets are a header, by which a phone joins the segments. Sources:

- alphabet: 3GPP TS 23.038, 6.2.1, and its extension, 6.2.1.1. The tables of national languages are not used;
- segments: 3GPP TS 23.040, 9.2.3.24.1. An escape and the character after it are in the same segment;
- the limits of Twilio: https://www.twilio.com/docs/glossary/what-sms-character-limit;
- the limits of AWS: https://docs.aws.amazon.com/sms-voice/latest/userguide/sms-limitations-character.html;
- two surrogates are in the same segment, a case that UCS-2 does not have: Twilio's calculator of segments,
  https://github.com/TwilioDevEd/message-segment-calculator. The calculator also keeps an accent with its
  letter, and the characters of one emoji together. Neither provider documents this, so it is not done here.
"""

import re

from msgspec import Struct

from mailroom.errors import Invalid
from mailroom.message.outcome import Facts

MAX_SEGMENTS = 10
"""Maximum number of segments that a phone joins into one message."""
_BASIC = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
"""Characters of GSM-7 that take one place, in the order of the standard. The escape, U+001B, is not among
them, because it only announces a character of the extension."""
_EXTENSION = "\f^{}\\[~]|€"
"""Characters of GSM-7 that take two places: an escape is sent before each."""
_WIDE = re.compile(f"[^{re.escape(_BASIC + _EXTENSION)}]")
"""Pattern of a character that GSM-7 lacks."""
_GSM_7 = "GSM-7", re.compile(f"[{re.escape(_EXTENSION)}]"), 160, 153
"""Encoding, pattern of a character that takes two places, number of places in the only segment of a text, and
in each of several segments."""
_UCS_2 = "UCS-2", re.compile("[\U00010000-\U0010ffff]"), 70, 67
_PAIR = "\ud800\udc00"
"""Two places of one character. In a text, these surrogates would be one character, which takes two places."""


class Segments(Struct, frozen=True):
    """Number of segments of a text, and their encoding."""

    count: int
    encoding: str
    """GSM-7, or UCS-2 if GSM-7 lacks at least one of the text's characters."""

    @property
    def facts(self) -> Facts:
        """Number and encoding of the segments, as attributes of a ledger item."""
        return {"segments": self.count, "encoding": self.encoding}


def segments_of(text: str) -> Segments:
    """Return the segments of a text. A provider that replaces characters may send fewer segments."""
    encoding, double, single, part = _UCS_2 if _WIDE.search(text) else _GSM_7
    places = double.sub(_PAIR, text)
    size = single if len(places) <= single else part
    count = end = 0
    while end < len(places):
        end += size
        if places[end - 1 : end + 1] == _PAIR:  # a segment would end within a character
            end -= 1
        count += 1
    return Segments(count, encoding)


def widening(text: str) -> str:
    """Return a sentence that names the characters which require the encoding UCS-2; "" if there are none."""
    wide = dict.fromkeys(_WIDE.findall(text))
    if not wide:
        return ""
    names = [f"{character!r} (U+{ord(character):04X})" for character in wide]
    subject, verb = ", ".join(names[:3]) + " …" * (len(names) > 3), "makes" if len(names) == 1 else "make"
    return f"{subject} {verb} this text UCS-2: 70 characters a segment, not 160"


def checked(name: str, text: str, limit: int) -> Segments:
    """Return the segments of a text. Raises Invalid, for the attribute `name`, if the text takes more than
    `limit` segments."""
    segments = segments_of(text)
    if segments.count > limit:
        hint = f"; {widening(text)}" if segments.encoding == "UCS-2" else ""
        raise Invalid(
            name, f"takes {segments.count} segments in {segments.encoding}; use at most {limit}{hint}"
        )
    return segments
