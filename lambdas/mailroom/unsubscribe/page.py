"""What the page behind an unsubscribe link shows: plain HTML in the reader's language, with one button, no
scripts and nothing from elsewhere.

The page shows an address shortened: its owner knows it, and a person who was forwarded the mail need not.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

import msgspec
from msgspec import Struct

from mailroom.message.address import readable
from mailroom.recipients.unsubscribe_links import Choice
from mailroom.unsubscribe.words import BUILT_IN, Words


class Topic(Struct, frozen=True):
    """A topic's titles by language, and the brand that the topic belongs to, "" for the page's own."""

    titles: dict[str, str] = {}
    brand: str = ""


class PageSettings(Struct, frozen=True):
    """What a stage says of its page. `languages` has, of each language that the page is offered in beside the
    default one, the words that are not the built-in ones."""

    brand: str = ""
    default_language: str = "en"
    languages: dict[str, dict[str, str]] = {}
    topics: dict[str, Topic] = {}

    @classmethod
    def read(cls, path: str) -> "PageSettings":
        """Read the settings in the bundle's file `path`, "" for none. Raises OSError and
        msgspec.ValidationError."""
        return msgspec.json.decode(Path(path).read_bytes(), type=cls) if path else cls()

    def language(self, accept_language: str) -> str:
        """The language of the page that the header `Accept-Language` prefers: for `de-AT` also `de`."""
        offered = {each.lower(): each for each in (self.default_language, *self.languages)}
        for tag in preferred(accept_language):
            if tag == "*":
                break
            for end in range(len(subtags := tag.split("-")), 0, -1):
                if found := offered.get("-".join(subtags[:end])):
                    return found
        return self.default_language

    def words(self, language: str) -> Words:
        """The words of a language; what it lacks is the default language's."""
        found: dict[str, str] = {}
        for each in (self.default_language, language):
            found |= BUILT_IN.get(each, {}) | self.languages.get(each, {})
        return msgspec.convert(found, Words)


MAX_HEADER = 500
"""Characters of `Accept-Language` that are read. Browsers send some 50."""
_RANGE = re.compile(r"\s*([a-z0-9-]{1,35}|\*)\s*(?:;\s*q=([01](?:\.[0-9]{0,3})?)\s*)?", re.IGNORECASE)


def preferred(accept_language: str) -> Iterable[str]:
    """The language tags of the header, in lower case, the most wanted first (RFC 9110, 12.5.4). `*` is
    whatever the page speaks, and what has the weight 0 is not wanted."""
    read = [_RANGE.fullmatch(each) for each in accept_language[:MAX_HEADER].split(",")]
    weighed = [(float(each[2] or 1), each[1].lower()) for each in read if each]
    return [tag for weight, tag in sorted(weighed, key=lambda each: -each[0]) if weight]


FIELD = "choice"
"""The page's own form field; that of a mail program is another one (RFC 8058)."""
OUT, IN = "unsubscribe", "subscribe"
"""The values of the form field."""

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{margin:0;font:1.125rem/1.6 system-ui,sans-serif;background:Canvas;color:CanvasText}"
    "main{max-width:34rem;margin:0 auto;padding:12vh 1.25rem 4rem;overflow-wrap:anywhere}"
    "h1{font-size:1.5rem;line-height:1.3;margin:0 0 1rem}"
    "p{margin:0 0 1.5rem}"
    ".brand{font-weight:600}"
    "button{font:inherit;font-weight:600;min-height:3rem;padding:.5rem 1.5rem;border:2px solid #0b57d0;"
    "border-radius:.5rem;background:#0b57d0;color:#fff;cursor:pointer}"
    "button:hover{background:#0842a0}"
    f"button[value={IN}]{{background:transparent;color:CanvasText;border-color:currentColor}}"
    "button:focus-visible{outline:3px solid CanvasText;outline-offset:3px}"
    "@media(max-width:30rem){main{padding-top:3rem}button{width:100%}}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    # The address of the page is the proof: it must reach no other site, no cache and no search engine.
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every page."""

_RIGHT_TO_LEFT = {"ar", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi", "arab", "hebr"}
"""Languages, and scripts that a language's tag may name, as in az-Arab."""
_PLACEHOLDER = re.compile(r"\{(recipient|topic|brand)\}")


class Page:
    """What one reader gets to see."""

    def __init__(self, settings: PageSettings, accept_language: str = "") -> None:
        self._settings = settings
        self._language = settings.language(accept_language)
        self._words = settings.words(self._language)

    def asking(self, choice: Choice) -> str:
        """Whether to opt out; nothing has happened yet."""
        words = self._words
        return self._html(words.asking_title, words.asking, choice, (OUT, words.unsubscribe))

    def opted_out(self, choice: Choice) -> str:
        """Opted out, now or before."""
        words = self._words
        return self._html(words.opted_out_title, words.opted_out, choice, (IN, words.subscribe))

    def opted_in(self, choice: Choice) -> str:
        """Opted in again."""
        words = self._words
        return self._html(words.opted_in_title, words.opted_in, choice, (OUT, words.unsubscribe))

    def unknown(self) -> str:
        """No link of ours. The page does not say what is wrong with it."""
        return self._html(self._words.unknown_title, self._words.unknown)

    def refused(self) -> str:
        """A request that a page of ours does not make."""
        return self._html(self._words.refused_title, self._words.refused)

    def failed(self) -> str:
        """Our own fault."""
        return self._html(self._words.failed_title, self._words.failed)

    def _html(
        self, title: str, text: str, choice: Choice | None = None, button: tuple[str, str] | None = None
    ) -> str:
        names = self._names(choice)
        # Isolated, so that a name which is written from right to left does not turn the sentence round.
        marked = {key: f"<bdi>{name}</bdi>" for key, name in names.items()}
        marked["recipient"] = f"<strong>{marked['recipient']}</strong>"
        brand = f'<p class="brand">{marked["brand"]}</p>\n' if names["brand"] else ""
        form = _form(button[0], _filled(button[1], marked)) if button else ""
        return (
            f'<!doctype html>\n<html lang="{self._language}" dir="{_direction(self._language)}">\n<head>\n'
            '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="robots" content="noindex, nofollow">\n'
            f"<title>{_filled(title, names)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
            f"{brand}<h1>{_filled(title, marked)}</h1>\n<p>{_filled(text, marked)}</p>\n{form}\n"
            "</main>\n</body>\n</html>\n"
        )

    def _names(self, choice: Choice | None) -> dict[str, str]:
        """What the placeholders stand for, as HTML; a fault of the request names nobody."""
        if choice is None:
            return {"recipient": "", "topic": "", "brand": escape(self._settings.brand)}
        topic = self._settings.topics.get(choice.topic, Topic())
        titles = topic.titles
        title = titles.get(self._language) or titles.get(self._settings.default_language) or choice.topic
        brand = topic.brand or self._settings.brand
        return {
            "recipient": escape(shortened(choice.recipient)),
            "topic": escape(title),
            "brand": escape(brand),
        }


def shortened(recipient: str) -> str:
    """`v***@example.com`; of anything but a mail address its last two characters."""
    local, at, domain = recipient.rpartition("@")
    return f"{local[:1]}***@{readable(domain)}" if at else f"…{recipient[-2:]}"


def _direction(language: str) -> str:
    return "ltr" if _RIGHT_TO_LEFT.isdisjoint(language.lower().split("-")) else "rtl"


def _filled(words: str, names: dict[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: names[found[1]], escape(words))


def _form(value: str, label: str) -> str:
    return f'<form method="post"><button type="submit" name="{FIELD}" value="{value}">{label}</button></form>'
