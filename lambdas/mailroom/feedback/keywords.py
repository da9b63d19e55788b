"""Texts that people send to our numbers: STOP, START, and everything else, which nobody here reads.

The words that stop: those of CTIA's "Short Code Monitoring Handbook" with Twilio's STOPALL, those that the
FCC names since 2025 (47 CFR 64.1200(a)(10): stop, quit, end, revoke, opt out, cancel, unsubscribe), and those
that AWS requires ("Required opt-out keywords" in its user guide: also ARRET, REMOVE and TD).
"""

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.feedback import values
from mailroom.telemetry import count

SOURCE = "twilio-text"
"""What marks a text in the feedback queue that the function for Twilio's requests has put there."""
STOP = (
    *("stop", "stopall", "unsubscribe", "cancel", "end", "quit", "revoke", "optout"),
    *("arret", "remove", "td"),
)
START = ("start", "unstop", "yes")

MAX_TEXT = 1600
"""Characters of a text: no provider hands on a longer one. Marks that follow one letter are sorted while they
are folded, which would take longer than such a text is long."""

_ACCENTS = frozenset(map(chr, range(0x0300, 0x0370)))
"""Unicode's block of diacritical marks. The marks of other blocks are letters to who writes them, such as the
vowels of Hindi."""

Wish = Literal["stop", "start"]


def folded(text: str) -> str:
    """A text without regard to case, blanks, punctuation and accents: `Opt-out!`, `OPT OUT` and `optout` are
    one, and so are `ARRÊT` and `arret`."""
    known = unicodedata.normalize("NFKD", text.casefold())
    return "".join(
        each for each in known if unicodedata.category(each)[0] not in "CPSZ" and each not in _ACCENTS
    )


class Keywords(Struct, frozen=True):
    """The words of one stage, folded."""

    stop: frozenset[str]
    start: frozenset[str]

    @classmethod
    def of(cls, stop: Iterable[str], start: Iterable[str]) -> "Keywords":
        """The words that everybody knows, and the stage's own."""
        return cls(frozenset(map(folded, (*STOP, *stop))), frozenset(map(folded, (*START, *start))))

    def wish(self, *texts: str) -> Wish | None:
        """What one of the texts asks for as a whole, above all to stop; None, which is counted: none is a
        keyword."""
        words = {folded(each) for each in texts if len(each) <= MAX_TEXT} - {""}
        if words & self.stop:
            return "stop"
        if words & self.start:
            return "start"
        count("TextsIgnored")
        return None


KNOWN = Keywords.of((), ())
"""The keywords of a stage without words of its own."""


class KeywordText(Struct, frozen=True):
    """`number` (E.164) has sent STOP or START to our number `sent_to`, at `at` (epoch milliseconds, by the
    provider's clock)."""

    number: str
    sent_to: str
    wish: Wish
    at: int


class _Inbound(Struct, frozen=True, rename="camel"):
    """A two-way SMS of AWS End User Messaging, as far as it is used: "Example of a two-way SMS message
    payload for Amazon SNS topics" in its user guide."""

    origination_number: str
    destination_number: str
    message_body: str


def read_twilio(words: Mapping[str, Any], region: str) -> list[KeywordText]:
    """A text from the function for Twilio's requests. Raises Malformed."""
    return _of(values.convert("a text by Twilio", words, KeywordText), region)


def read_aws(words: Mapping[str, Any], sent: str, keywords: Keywords, region: str) -> list[KeywordText]:
    """A text that SNS published at `sent` (ISO 8601), the one time that there is; [] for no keyword. Raises
    Malformed."""
    text = values.convert("a text by AWS", words, _Inbound)
    wish = keywords.wish(text.message_body)
    if wish is None:
        return []
    at = values.time("Timestamp", sent)
    return _of(KeywordText(text.origination_number, text.destination_number, wish, at), region)


def _of(text: KeywordText, region: str) -> list[KeywordText]:
    """The text with its number as messages have it. Raises Malformed if the number cannot be read: dropped, a
    STOP would be ignored unseen."""
    at = values.milliseconds("at", text.at)
    if not (numbers := values.number(text.number, region)):
        raise Malformed("the number of a STOP or START cannot be read; mark it by hand")
    return [KeywordText(each, values.word(text.sent_to), text.wish, at) for each in numbers]
