"""The pages behind a link for opting out: plain HTML with one button, no scripts, nothing from elsewhere.

They show the address shortened: its owner knows it, and a person who was forwarded the mail need not.
"""

import base64
import hashlib
from html import escape

from mailroom.message.address import readable
from mailroom.recipients.unsubscribe_links import Choice

FIELD = "choice"
"""The page's own form field; that of a mail program is another one (RFC 8058)."""
OUT, IN = "unsubscribe", "subscribe"
"""Its values."""

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{margin:0;font:1.125rem/1.6 system-ui,sans-serif;background:Canvas;color:CanvasText}"
    "main{max-width:34rem;margin:0 auto;padding:12vh 1.25rem 4rem;overflow-wrap:anywhere}"
    "h1{font-size:1.5rem;line-height:1.3;margin:0 0 1rem}"
    "p{margin:0 0 1.5rem}"
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
"""Of every page."""


def asking(choice: Choice) -> str:
    """Whether to opt out; nothing has happened yet."""
    who, what = _named(choice)
    text = f"{who} will then get no more messages about {what}. Nothing has been changed yet."
    return _page(f"No more {what}?", text, _button(OUT, "Unsubscribe"))


def opted_out(choice: Choice) -> str:
    """Opted out, now or before."""
    who, what = _named(choice)
    text = f"{who} gets no more messages about {what}. One that is on its way already may still arrive."
    return _page("You are unsubscribed", text, _button(IN, "Get them again"))


def opted_in(choice: Choice) -> str:
    """Opted in again."""
    who, what = _named(choice)
    return _page("You are subscribed", f"{who} gets messages about {what}.", _button(OUT, "Unsubscribe"))


def unknown() -> str:
    """No link of ours. The page does not say what is wrong with it."""
    text = "Perhaps it was cut off on its way: please open it from the mail itself, whole."
    return _page("This link does not work", text)


def refused() -> str:
    """A request that a page of ours does not make."""
    return _page("That did not work", "Please open the link in the mail again, and use the button there.")


def failed() -> str:
    """Our own fault."""
    text = "We could not reach our records, and nothing has been changed. Please try again in a minute."
    return _page("Please try again", text)


def shortened(recipient: str) -> str:
    """`v***@example.com`; of anything but a mail address its last two characters."""
    local, at, domain = recipient.rpartition("@")
    return f"{local[:1]}***@{readable(domain)}" if at else f"…{recipient[-2:]}"


def _named(choice: Choice) -> tuple[str, str]:
    # Isolated, so that a name which is written from right to left does not turn the sentence round.
    return (
        f"<strong><bdi>{escape(shortened(choice.recipient))}</bdi></strong>",
        f"“<bdi>{escape(choice.topic)}</bdi>”",
    )


def _button(value: str, label: str) -> str:
    return f'<form method="post"><button type="submit" name="{FIELD}" value="{value}">{label}</button></form>'


def _page(title: str, text: str, form: str = "") -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex, nofollow">\n'
        f"<title>{_bare(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{title}</h1>\n<p>{text}</p>\n{form}\n</main>\n</body>\n</html>\n"
    )


def _bare(title: str) -> str:
    """A title's elements stay out of the window's, which shows them as text."""
    return title.replace("<bdi>", "").replace("</bdi>", "")
