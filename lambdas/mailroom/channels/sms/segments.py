"""How many parts a text takes on the air: what it costs, and what a carrier cuts it into."""

from msgspec import Struct

from mailroom.errors import Invalid
from mailroom.message.outcome import Facts

_ENCODINGS = {160: "GSM-7", 153: "GSM-7", 70: "UCS-2", 67: "UCS-2"}
"""By the characters of a segment, of a text of one or of several: 3GPP TS 23.040."""


class Segments(Struct, frozen=True):
    """`count` segments in `encoding`, which is GSM-7 or, where one character is not in that, UCS-2."""

    count: int
    encoding: str

    @property
    def facts(self) -> Facts:
        """As the ledger keeps them."""
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
