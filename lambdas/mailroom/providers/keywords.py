"""Recognises STOP and START in the texts that people send to the stage's numbers. Mailroom ignores all other
texts.

Sources of the words in `STOP`: CTIA's "Short Code Monitoring Handbook"; Twilio (STOPALL); the FCC's rule of
2025, 47 CFR 64.1200(a)(10) (stop, quit, end, revoke, opt out, cancel, unsubscribe); and "Required opt-out
keywords" in the user guide of AWS End User Messaging (also ARRET, REMOVE and TD).
"""

import unicodedata
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.providers import values
from mailroom.telemetry import count

STOP = (
    *("stop", "stopall", "unsubscribe", "cancel", "end", "quit", "revoke", "optout"),
    *("arret", "remove", "td"),
)
START = ("start", "unstop", "yes")

MAX_TEXT = 1600
"""Maximum number of characters of a text that providers pass on. Longer texts are ignored, because the time
that `folded` takes would grow faster than the text: it sorts the accents after a letter."""

_ACCENTS = frozenset(map(chr, range(0x0300, 0x0370)))
"""Characters of Unicode's block of diacritical marks, which are removed from a text. Marks of other blocks
are not removed, because they change the word, such as the vowels of Hindi."""

Wish = Literal["stop", "start"]


def folded(text: str) -> str:
    """Return the text in lower case without blanks, punctuation and accents: `Opt-out!`, `OPT OUT` and
    `optout` become the same text, and so do `ARRÊT` and `arret`."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(
        char for char in decomposed if unicodedata.category(char)[0] not in "CPSZ" and char not in _ACCENTS
    )


class Keywords(Struct, frozen=True):
    """Folded keywords of a stage."""

    stop: frozenset[str]
    """Words after which the person who sent them gets no more texts."""
    start: frozenset[str]
    """Words after which the person who sent them gets texts again."""

    @classmethod
    def of(cls, stop: Iterable[str], start: Iterable[str]) -> "Keywords":
        """Build the set of keywords by which a stage recognises STOP and START: the words of `STOP` and
        `START`, and the stage's additional words."""
        return cls(frozenset(map(folded, (*STOP, *stop))), frozenset(map(folded, (*START, *start))))

    def wish(self, *texts: str) -> Wish | None:
        """Return the wish that the texts express: "stop" if one of the texts is a keyword for STOP, otherwise
        "start" if one is a keyword for START. A keyword within a longer text is ignored.

        If none of the texts is a keyword, return None, and count the texts in the metric `TextsIgnored`.
        """
        words = {folded(text) for text in texts if len(text) <= MAX_TEXT} - {""}
        if words & self.stop:
            return "stop"
        if words & self.start:
            return "start"
        count("TextsIgnored")
        return None


KNOWN = Keywords.of((), ())
"""Keywords of a stage without additional words."""


class KeywordText(Struct, frozen=True):
    """Text with STOP or START that a person sent to a number of the stage."""

    number: str
    """Number of the person who sent the text, in E.164."""
    sent_to: str
    """Number of the stage that received the text."""
    wish: Wish
    at: int
    """Time of the text in epoch milliseconds, by the provider's clock."""


def canonical(text: KeywordText, region: str) -> list[KeywordText]:
    """Return the text with the sender's number in E.164, the canonical form of a recipient.

    Raises Malformed if the number is invalid. The record then becomes a dead letter, so that an alarm tells
    an operator to add the recipient to the suppression list.
    """
    time_ms = values.milliseconds("at", text.at)
    if not (numbers := values.number(text.number, region)):
        raise Malformed("the number of a STOP or START is invalid; change the suppression list")
    return [KeywordText(number, values.word(text.sent_to), text.wish, time_ms) for number in numbers]
