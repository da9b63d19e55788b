"""Pages in plain HTML, in the reader's language and without content of other sites. An opt-out link opens a
page with one button and without scripts. The page of preferences has a switch for each topic, and works with
and without scripts.

A page shows only a part of the address, so that the recipient recognizes it, but another person who gets a
forwarded mail does not see it.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

import msgspec
from msgspec import Struct

from mailroom.message.address import readable
from mailroom.recipients.choices import TopicChoice
from mailroom.recipients.unsubscribe_links import Choice
from mailroom.unsubscribe.words import BUILT_IN, Words


class Topic(Struct, frozen=True):
    """Topic on the page."""

    titles: dict[str, str] = {}
    """Titles by language."""
    sentences: dict[str, str] = {}
    """Sentences about the topic by language."""
    brand: str = ""
    """Brand of the topic; if empty, the page's `brand` is used."""


class PageSettings(Struct, frozen=True):
    """Settings of a stage's page."""

    brand: str = ""
    default_language: str = "en"
    languages: dict[str, dict[str, str]] = {}
    """Languages of the page besides the default one, with the words that override the built-in ones."""
    topics: dict[str, Topic] = {}

    @classmethod
    def read(cls, path: str) -> "PageSettings":
        """Return the settings in the bundle's file `path`, or the default settings for an empty path. Raises
        OSError and msgspec.ValidationError."""
        return msgspec.json.decode(Path(path).read_bytes(), type=cls) if path else cls()

    def language(self, accept_language: str) -> str:
        """Return the language of the page that `Accept-Language` prefers, for example `de` for `de-AT`."""
        languages = {tag.lower(): tag for tag in (self.default_language, *self.languages)}
        for tag in preferred(accept_language):
            if tag == "*":
                break
            for end in range(len(subtags := tag.split("-")), 0, -1):
                if language := languages.get("-".join(subtags[:end])):
                    return language
        return self.default_language

    def words(self, language: str) -> Words:
        """Return the words of a language. Missing words are taken from the default language."""
        words: dict[str, str] = {}
        for tag in (self.default_language, language):
            words |= BUILT_IN.get(tag, {}) | self.languages.get(tag, {})
        return msgspec.convert(words, Words)


MAX_HEADER = 500
"""Maximum number of characters of `Accept-Language` that are read. Browsers send about 50."""
_RANGE = re.compile(r"\s*([a-z0-9-]{1,35}|\*)\s*(?:;\s*q=([01](?:\.[0-9]{0,3})?)\s*)?", re.IGNORECASE)


def preferred(accept_language: str) -> Iterable[str]:
    """Return the language tags in the header in lower case, in the order of preference (RFC 9110, 12.5.4),
    without tags of weight 0. The tag `*` means any language."""
    matches = map(_RANGE.fullmatch, accept_language[:MAX_HEADER].split(","))
    weights = [(float(match[2] or 1), match[1].lower()) for match in matches if match]
    return [tag for weight, tag in sorted(weights, key=lambda pair: -pair[0]) if weight]


FIELD = "choice"
"""Form field of the page; mail programs post another one (RFC 8058)."""
OUT, IN = "unsubscribe", "subscribe"
"""Values of the form field. On the page of preferences they are fields, whose value is the topic."""
NOTHING = "nothing"
"""Field of the button that opts out of all topics."""

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
    f"button:is([value={IN}],[name={NOTHING}])"
    "{background:transparent;color:CanvasText;border-color:currentColor}"
    "ul{list-style:none;margin:0 0 1.5rem;padding:0}"
    "li{border-top:1px solid #767676;padding:.75rem 0}li p{margin:0}"
    "[role=switch]{display:flex;justify-content:space-between;align-items:center;gap:1rem;width:100%;"
    "padding:.25rem 0;border:0;background:none;color:CanvasText;text-align:start}"
    "[role=switch]:hover{background:none;text-decoration:underline}"
    "[role=switch]:disabled{cursor:default;text-decoration:none}"
    "[role=switch]::after{content:'';flex:none;box-sizing:border-box;width:3rem;height:1.75rem;"
    "border:2px solid #767676;border-radius:1rem;"
    "background:radial-gradient(circle at .75rem 50%,#767676 .45rem,transparent .5rem)}"
    "[role=switch][aria-checked=true]::after{border-color:#0b57d0;"
    "background:radial-gradient(circle at calc(100% - .75rem) 50%,#fff .45rem,#0b57d0 .5rem)}"
    "[dir=rtl] [role=switch]::after{transform:scaleX(-1)}"
    "[role=status]{min-height:1.6em;margin:0 0 .5rem;font-weight:600}"
    "button:focus-visible{outline:3px solid CanvasText;outline-offset:3px}"
    "@media(max-width:30rem){main{padding-top:3rem}button{width:100%}}"
)
_SCRIPT = """
addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.submitter, status = document.querySelector("[role=status]");
  status.textContent = "";
  try {
    const body = new URLSearchParams({[button.name]: button.value});
    const response = await fetch("", {method: "POST", body});
    if (!response.ok) throw new Error(response.status);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    document.querySelector("form").replaceWith(page.querySelector("form"));
    document.getElementById(button.id).focus();
    status.textContent = status.dataset.saved;
  } catch {
    status.textContent = status.dataset.failed;
  }
});
"""
"""Script that saves a choice without a reload, and shows the form of the response."""


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": (
        f"default-src 'none'; style-src {_hash(_STYLE)}; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    # The page's URL is the reader's proof of identity, so it must not reach other sites, caches or search
    # engines.
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every page without a script."""


def headers_of(html: str) -> dict[str, str]:
    """Return the headers of a page. Only a page with the script allows it."""
    policy = HEADERS["Content-Security-Policy"]
    policy += f"; script-src {_hash(_SCRIPT)}; connect-src 'self'" if _SCRIPT in html else ""
    return {**HEADERS, "Content-Security-Policy": policy}


_RIGHT_TO_LEFT = {"ar", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi", "arab", "hebr"}
"""Languages, and scripts in language tags such as az-Arab, that are written from right to left."""
_PLACEHOLDER = re.compile(r"\{(recipient|topic|brand)\}")


class Page:
    """Builds the pages for a reader, in the reader's language."""

    def __init__(self, settings: PageSettings, accept_language: str = "") -> None:
        self._settings = settings
        self._language = settings.language(accept_language)
        self._words = settings.words(self._language)

    def asking(self, choice: Choice) -> str:
        """Return the page that asks whether to opt out."""
        words = self._words
        return self._asking(words.asking_title, words.asking, choice, OUT, words.unsubscribe)

    def opted_out(self, choice: Choice) -> str:
        """Return the page for a recipient who has opted out."""
        words = self._words
        return self._asking(words.opted_out_title, words.opted_out, choice, IN, words.subscribe)

    def opted_in(self, choice: Choice) -> str:
        """Return the page for a recipient who has opted in again."""
        words = self._words
        return self._asking(words.opted_in_title, words.opted_in, choice, OUT, words.unsubscribe)

    def preferences(self, recipient: str, choices: Mapping[str, TopicChoice], *, saved: bool) -> str:
        """Return the page with a switch for each topic of the stage. `saved` is whether the request has
        stored a choice."""
        words, topics = self._words, enumerate(self._settings.topics)
        choice = Choice(recipient, "")
        names, marked = self._names(choice), self._marked(choice)
        done, failed = (_filled(text, names) for text in (words.saved, words.failed_title))
        switches = "".join(self._switch(number, topic, choices.get(topic)) for number, topic in topics)
        form = (
            f'<p role="status" data-saved="{done}" data-failed="{failed}">{done if saved else ""}</p>\n'
            f'<form method="post">\n<ul>\n{switches}</ul>\n<p>{_filled(words.must, marked)}</p>\n'
            f'<button type="submit" id="{NOTHING}" name="{NOTHING}" value="1">'
            f"{_filled(words.nothing, marked)}</button>\n</form>\n<script>{_SCRIPT}</script>"
        )
        return self._html(words.preferences_title, words.preferences, choice, form)

    def _switch(self, number: int, topic: str, choice: TopicChoice | None) -> str:
        """Return the list item with the switch of a topic. A choice that was made in another way can only be
        undone in another way."""
        out = choice is not None and choice.out
        fixed = choice is not None and choice.out and choice.by != "preferences"
        sentences = [self._of_language(self._settings.topics[topic].sentences)]
        sentences += [self._words.elsewhere] if fixed else []
        return (
            f'<li><button type="submit" role="switch" id="switch-{number}" '
            f'aria-checked="{"false" if out else "true"}" aria-describedby="about-{number}" '
            f'name="{IN if out else OUT}" value="{escape(topic)}"{" disabled" if fixed else ""}>'
            f"{self._marked(Choice('', topic))['topic']}</button>"
            f'<p id="about-{number}">{escape(" ".join(filter(None, sentences)))}</p></li>\n'
        )

    def unknown(self) -> str:
        """Return the page for an invalid link. The page does not explain why the link is invalid."""
        return self._html(self._words.unknown_title, self._words.unknown)

    def refused(self) -> str:
        """Return the page for an invalid request."""
        return self._html(self._words.refused_title, self._words.refused)

    def failed(self) -> str:
        """Return the page for an error of Mailroom."""
        return self._html(self._words.failed_title, self._words.failed)

    def _asking(self, title: str, text: str, choice: Choice, value: str, label: str) -> str:
        """Return a page with one button, which has this value of the form field."""
        label = _filled(label, self._marked(choice))
        button = f'<button type="submit" name="{FIELD}" value="{value}">{label}</button>'
        return self._html(title, text, choice, f'<form method="post">{button}</form>')

    def _marked(self, choice: Choice | None) -> dict[str, str]:
        """Return the values of the placeholders as marked HTML."""
        # `<bdi>` isolates each name, so that a name written from right to left does not reverse the sentence.
        marked = {key: f"<bdi>{name}</bdi>" for key, name in self._names(choice).items()}
        return {**marked, "recipient": f"<strong>{marked['recipient']}</strong>"}

    def _html(self, title: str, text: str, choice: Choice | None = None, form: str = "") -> str:
        names, marked = self._names(choice), self._marked(choice)
        brand = f'<p class="brand">{marked["brand"]}</p>\n' if names["brand"] else ""
        return (
            f'<!doctype html>\n<html lang="{self._language}" dir="{_direction(self._language)}">\n<head>\n'
            '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="robots" content="noindex, nofollow">\n'
            f"<title>{_filled(title, names)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
            f"{brand}<h1>{_filled(title, marked)}</h1>\n<p>{_filled(text, marked)}</p>\n{form}\n"
            "</main>\n</body>\n</html>\n"
        )

    def _names(self, choice: Choice | None) -> dict[str, str]:
        """Return the values of the placeholders, as HTML. On pages about an error, recipient and topic are
        empty."""
        if choice is None:
            return {"recipient": "", "topic": "", "brand": escape(self._settings.brand)}
        topic = self._settings.topics.get(choice.topic, Topic())
        title = self._of_language(topic.titles) or choice.topic
        brand = topic.brand or self._settings.brand
        return {
            "recipient": escape(shortened(choice.recipient)),
            "topic": escape(title),
            "brand": escape(brand),
        }

    def _of_language(self, texts: Mapping[str, str]) -> str:
        """Return the text in the page's language, or else in the default language, or else ""."""
        return texts.get(self._language) or texts.get(self._settings.default_language, "")


def shortened(recipient: str) -> str:
    """Return a recipient in a shortened form: `v***@example.com` for a mail address, or the last two
    characters of any other recipient."""
    local, sign, domain = recipient.rpartition("@")
    return f"{local[:1]}***@{readable(domain)}" if sign else f"…{recipient[-2:]}"


def _direction(language: str) -> str:
    return "ltr" if _RIGHT_TO_LEFT.isdisjoint(language.lower().split("-")) else "rtl"


def _filled(words: str, names: dict[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: names[match[1]], escape(words))
