"""Renders the text of a text message, and counts its segments."""

from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.channels.sms.contract import Sms, check_text, plain
from mailroom.errors import Invalid
from mailroom.message.outcome import Facts

if TYPE_CHECKING:
    from mailroom.content.templates import Templates

MAX_SEGMENTS = 10
"""Maximum number of segments that a phone joins into one message."""
_ENCODINGS = {160: "GSM-7", 153: "GSM-7", 70: "UCS-2", 67: "UCS-2"}
"""Encodings by the number of characters in a segment. In each encoding, the larger number is for texts of one
segment, the smaller number for longer texts. Source: 3GPP TS 23.040."""


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
    # The module is imported with the first text, because the import takes 80 ms, mostly for vCards, which
    # Mailroom does not use.
    from sms_toolkit.messages.profiling import profile_message

    profile = profile_message(text)
    return Segments(profile["num_segments"], _ENCODINGS[profile["max_segment_size"]])


def widening(text: str) -> str:
    """Return a sentence that names the characters which require the encoding UCS-2; "" if there are none."""
    wide = [character for character in dict.fromkeys(text) if segments_of(character).encoding == "UCS-2"]
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


def text_of(message: Sms, templates: "Templates | None", *, strict: bool = False) -> str:
    """Return the message's text, or render the message's template. `templates` may be None for a message
    without a template. Raises Invalid; if `strict`, also for an attribute that has no effect."""
    if message.template is None or templates is None:
        if strict:
            message.check_names((), strict=True)
        return message.text or ""
    templates.check_names(message, strict=strict)
    locale, version = message.locale, message.template_version
    text = plain(templates.text(message.template, message.variables, locale=locale, version=version)).strip()
    check_text("template", text)
    return text
