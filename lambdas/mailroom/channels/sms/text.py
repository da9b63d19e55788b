"""The text of a text message: as it is rendered, and the segments that it takes."""

from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.channels.sms.contract import Sms, check_text
from mailroom.errors import Invalid
from mailroom.message.outcome import Facts

if TYPE_CHECKING:
    from mailroom.content.templates import Templates

MAX_SEGMENTS = 10
"""What a phone puts together."""
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


def checked(name: str, text: str, most: int) -> Segments:
    """The segments of a text. Raises Invalid, naming the attribute, where there are over `most`."""
    found = segments_of(text)
    if found.count > most:
        wide = "; characters outside GSM-7 make it longer" if found.encoding == "UCS-2" else ""
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
    version = message.template_version
    text = templates.text(message.template, message.variables, locale=message.locale, version=version).strip()
    check_text("template", text)
    return text
