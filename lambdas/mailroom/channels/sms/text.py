"""The rendered text of a text message, and its segments."""

from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.channels.sms.contract import Sms, check_text, plain
from mailroom.errors import Invalid
from mailroom.message.outcome import Facts

if TYPE_CHECKING:
    from mailroom.content.templates import Templates

MAX_SEGMENTS = 10
"""Maximum number of segments that a phone joins into one message."""
_QUOTES = {"'": "\u2018\u2019\u201a\u2032", '"': "\u201c\u201d\u201e\u2033\xab\xbb", "...": "\u2026"}
_SPACES = {" ": "\xa0\u2007\u2009\u202f", "": "\xad\u200b\ufeff", "-": "\u2010\u2011\u2012\u2013\u2014\u2212"}
PLAIN = {variant: substitute for substitute, variants in (_QUOTES | _SPACES).items() for variant in variants}
"""GSM-7 substitutes for characters of word processors and web pages: quotes, dashes, spaces, ellipses."""
_ENCODINGS = {160: "GSM-7", 153: "GSM-7", 70: "UCS-2", 67: "UCS-2"}
"""Encodings by characters in a segment, for texts of one segment and of several: 3GPP TS 23.040."""


class Segments(Struct, frozen=True):
    """Segments of a text."""

    count: int
    encoding: str
    """GSM-7, or UCS-2 if at least one character is not in GSM-7."""

    @property
    def facts(self) -> Facts:
        """The segments as attributes of a ledger item."""
        return {"segments": self.count, "encoding": self.encoding}


def segments_of(text: str) -> Segments:
    """Return the segments of a text. A provider that replaces characters may need fewer."""
    # Imported late: it takes 80 ms, mostly for vCards, which are not used here.
    from sms_toolkit.messages.profiling import profile_message

    profile = profile_message(text)
    return Segments(profile["num_segments"], _ENCODINGS[profile["max_segment_size"]])


def widening(text: str) -> str:
    """Return a sentence about the characters that make a text UCS-2, their cost, and their substitutes if all
    of them have one. The sentence is empty for a text in GSM-7."""
    wide = [character for character in dict.fromkeys(text) if segments_of(character).encoding == "UCS-2"]
    if not wide:
        return ""
    names = [f"{character!r} (U+{ord(character):04X})" for character in wide]
    subject, verb = ", ".join(names[:3]) + " …" * (len(names) > 3), "makes" if len(names) == 1 else "make"
    substitutes = {character: PLAIN.get(character, "?") for character in wide}
    count = segments_of(text).count
    plain_count = segments_of("".join(substitutes.get(character, character) for character in text)).count
    cost = f": {count} segments instead of {plain_count}" if count > plain_count else ", at no cost"
    words = dict.fromkeys(repr(word) if word else "nothing" for word in substitutes.values())
    advice = f"; write {' or '.join(words)}" if substitutes.keys() <= PLAIN.keys() else ""
    return f"{subject} {verb} this text UCS-2{cost}{advice}"


def checked(name: str, text: str, limit: int) -> Segments:
    """Return the segments of a text. Raises Invalid, for the attribute `name`, if there are more than
    `limit`."""
    segments = segments_of(text)
    if segments.count > limit:
        hint = f"; {widening(text)}" if segments.encoding == "UCS-2" else ""
        raise Invalid(
            name, f"takes {segments.count} segments in {segments.encoding}; use at most {limit}{hint}"
        )
    return segments


def text_of(message: Sms, templates: "Templates | None", *, strict: bool = False) -> str:
    """Return the text, rendered if the message has a template; only then `templates` are required. Raises
    Invalid, if `strict` also for an attribute that has no effect."""
    if message.template is None or templates is None:
        if strict:
            message.check_names((), strict=True)
        return message.text or ""
    templates.check_names(message, strict=strict)
    locale, version = message.locale, message.template_version
    text = plain(templates.text(message.template, message.variables, locale=locale, version=version)).strip()
    check_text("template", text)
    return text
