"""The text of a text message: as it is rendered, and the segments that it takes."""

from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.channels.sms.contract import Sms, check_text, plain
from mailroom.errors import Invalid
from mailroom.message.outcome import Facts

if TYPE_CHECKING:
    from mailroom.content.templates import Templates

MAX_SEGMENTS = 10
"""What a phone puts together."""
_QUOTES = {"'": "\u2018\u2019\u201a\u2032", '"': "\u201c\u201d\u201e\u2033\xab\xbb", "...": "\u2026"}
_SPACES = {" ": "\xa0\u2007\u2009\u202f", "": "\xad\u200b\ufeff", "-": "\u2010\u2011\u2012\u2013\u2014\u2212"}
PLAIN = {each: ours for ours, others in (_QUOTES | _SPACES).items() for each in others}
"""GSM-7 for what word processors and web pages put into texts: quotes, dashes, spaces and an ellipsis."""
_ENCODINGS = {160: "GSM-7", 153: "GSM-7", 70: "UCS-2", 67: "UCS-2"}
"""Encodings by the characters of a segment, in a text of one or of several: 3GPP TS 23.040."""


class Segments(Struct, frozen=True):
    """`count` segments in `encoding`, which is GSM-7 or, where one character is not in that, UCS-2."""

    count: int
    encoding: str

    @property
    def facts(self) -> Facts:
        """The segments as the ledger keeps them."""
        return {"segments": self.count, "encoding": self.encoding}


def segments_of(text: str) -> Segments:
    """The segments of a text as it is written. A provider that replaces characters may need fewer."""
    # 80 ms, most of it for address cards that nobody sends here.
    from sms_toolkit.messages.profiling import profile_message

    profile = profile_message(text)
    return Segments(profile["num_segments"], _ENCODINGS[profile["max_segment_size"]])


def widening(text: str) -> str:
    """Say in a sentence which characters make a text UCS-2, what they cost, and what to write if all of them
    have a plain form; "" for a text in GSM-7."""
    wide = dict.fromkeys(each for each in dict.fromkeys(text) if segments_of(each).encoding == "UCS-2")
    if not wide:
        return ""
    names = [f"{each!r} (U+{ord(each):04X})" for each in wide]
    before = segments_of("".join(PLAIN.get(each, "?") if each in wide else each for each in text)).count
    count = segments_of(text).count
    cost = f": {count} segments instead of {before}" if count > before else ", at no cost"
    words = dict.fromkeys(repr(PLAIN.get(each)) if PLAIN.get(each) else "nothing" for each in wide)
    advice = f"; write {' or '.join(words)}" if wide.keys() <= PLAIN.keys() else ""
    shown, verb = ", ".join(names[:3]) + " …" * (len(names) > 3), "makes" if len(names) == 1 else "make"
    return f"{shown} {verb} this text UCS-2{cost}{advice}"


def checked(name: str, text: str, most: int) -> Segments:
    """The segments of a text. Raises Invalid, naming the attribute, where there are over `most`."""
    found = segments_of(text)
    if found.count > most:
        wide = f"; {widening(text)}" if found.encoding == "UCS-2" else ""
        raise Invalid(name, f"takes {found.count} segments in {found.encoding}; use at most {most}{wide}")
    return found


def text_of(message: Sms, templates: "Templates | None", *, strict: bool = False) -> str:
    """The text, rendered where a template makes it. `strict`: attributes that nobody uses are refused. Raises
    Invalid. `templates` may be None where no template does."""
    if message.template is None or templates is None:
        if strict:
            message.check_names((), strict=True)
        return message.text or ""
    templates.check_names(message, strict=strict)
    locale, version = message.locale, message.template_version
    text = plain(templates.text(message.template, message.variables, locale=locale, version=version)).strip()
    check_text("template", text)
    return text
