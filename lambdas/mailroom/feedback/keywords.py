"""Texts that people send to the stage's numbers: STOP, START, and other texts, which Mailroom ignores.

Sources of the words in STOP: CTIA's "Short Code Monitoring Handbook"; Twilio (STOPALL); the FCC's rule of
2025, 47 CFR 64.1200(a)(10) (stop, quit, end, revoke, opt out, cancel, unsubscribe); and "Required opt-out
keywords" in the user guide of AWS End User Messaging (also ARRET, REMOVE and TD).
"""

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.feedback import values
from mailroom.telemetry import count

SOURCE = "twilio-text"
"""Value of `source` in a queue message that holds a STOP or START received by Twilio."""
STOP = (
    *("stop", "stopall", "unsubscribe", "cancel", "end", "quit", "revoke", "optout"),
    *("arret", "remove", "td"),
)
START = ("start", "unstop", "yes")

MAX_TEXT = 1600
"""Characters of the longest text that providers pass on. Longer ones are ignored: `folded` sorts the marks
that follow a letter, so its work would grow faster than the text."""

_ACCENTS = frozenset(map(chr, range(0x0300, 0x0370)))
"""Unicode's block of diacritical marks. Marks of other blocks, such as the vowels of Hindi, change a word and
stay."""

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
    """Words that stop all texts to their sender."""
    start: frozenset[str]
    """Words that allow texts to their sender again."""

    @classmethod
    def of(cls, stop: Iterable[str], start: Iterable[str]) -> "Keywords":
        """Fold the words of STOP and START, and the stage's additional words."""
        return cls(frozenset(map(folded, (*STOP, *stop))), frozenset(map(folded, (*START, *start))))

    def wish(self, *texts: str) -> Wish | None:
        """Return the wish that one of the texts, as a whole, is a keyword for; "stop" wins over "start".

        Return None if the texts are not keywords, and count them as `TextsIgnored`.
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
    """A STOP or START that somebody sent to a number of the stage."""

    number: str
    """Sender of the text, in E.164."""
    sent_to: str
    """Number of the stage that received the text."""
    wish: Wish
    at: int
    """Time of the text in epoch milliseconds, by the provider's clock."""


class _Inbound(Struct, frozen=True, rename="camel"):
    """The fields of a two-way SMS of AWS End User Messaging that Mailroom reads. Source: "Example of a
    two-way SMS message payload for Amazon SNS topics" in the service's user guide."""

    origination_number: str
    destination_number: str
    message_body: str


def read_twilio(payload: Mapping[str, Any], region: str) -> list[KeywordText]:
    """Read a STOP or START that the function `twilio_callbacks` has queued. Raises Malformed."""
    return _canonical(values.convert("a text by Twilio", payload, KeywordText), region)


def read_aws(
    payload: Mapping[str, Any], published: str, keywords: Keywords, region: str
) -> list[KeywordText]:
    """Read a text from AWS; the list is empty if the text is not a keyword. Raises Malformed.

    `published` is when SNS published the text (ISO 8601); AWS does not report when it was sent.
    """
    text = values.convert("a text by AWS", payload, _Inbound)
    wish = keywords.wish(text.message_body)
    if wish is None:
        return []
    time_ms = values.time("Timestamp", published)
    return _canonical(KeywordText(text.origination_number, text.destination_number, wish, time_ms), region)


def _canonical(text: KeywordText, region: str) -> list[KeywordText]:
    """Return the text with the sender's number in E.164, the canonical form of a recipient.

    Raises Malformed if the number is invalid: a dead letter alerts a person, who can add the STOP by hand.
    """
    time_ms = values.milliseconds("at", text.at)
    if not (numbers := values.number(text.number, region)):
        raise Malformed("the number of a STOP or START cannot be read; mark it by hand")
    return [KeywordText(number, values.word(text.sent_to), text.wish, time_ms) for number in numbers]
