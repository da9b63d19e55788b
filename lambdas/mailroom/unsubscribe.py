"""Takes people's choices at the link of a mail: opting out of a topic with one click, and in again.

A mail program posts `List-Unsubscribe=One-Click` (RFC 8058), the page behind the link a field of its own. GET
and HEAD change nothing, for programs that look at mails follow every link in them; nothing redirects.

The pages are plain HTML with one button, no scripts, nothing from elsewhere. They show the address shortened:
its owner knows it, and a person who was forwarded the mail need not.
"""

import base64
import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.aws import clients
from mailroom.aws.secret import CachedSecret
from mailroom.environment import UnsubscribeSettings
from mailroom.errors import Malformed
from mailroom.http import event as http_event
from mailroom.http.event import HttpError
from mailroom.message.address import readable
from mailroom.recipients.choices import By, Preferences
from mailroom.recipients.unsubscribe_links import ONE_CLICK, Choice, InvalidSigningKey, Tokens
from mailroom.telemetry import count, logger

SECRET_SECONDS = 60
"""For so long a key that was taken out may still be good. A new one is known sooner: a sender's next process
signs with it at once, so that a wrong signature has the secret read anew."""
_CLICK_FIELD, _CLICK = ONE_CLICK.split("=")
RETRY_AFTER_SECONDS = 60
_METHODS = ("GET", "HEAD", "POST")

MAX_BODY_BYTES = 8 * 1024
"""What mail programs and the page post has some 200."""
MAX_FIELDS = 20
_PARAMETER = r'(?:^|;)\s*{}=(?:"([^"\r\n]*)"|([^\s;"]+))'
_BOUNDARY = re.compile(_PARAMETER.format("boundary"), re.IGNORECASE)
_NAME = re.compile(
    r"^content-disposition:\s*form-data\b[^\r\n]*?" + _PARAMETER.format("name"), re.IGNORECASE | re.MULTILINE
)


class UnsubscribeRequest(http_event.HttpRequest, frozen=True, kw_only=True, rename="camel"):
    """A request to the page."""

    path_parameters: dict[str, str] | None = None

    @property
    def token(self) -> str:
        """What stands in the path, and proves nothing yet."""
        return (self.path_parameters or {}).get("token", "")

    def fields(self) -> dict[str, str]:
        """What was posted: a form in either encoding, for mail providers use both.

        Raises HttpError: 415 no form, 413 too large, 400 one that cannot be read, or a field twice.
        """
        match self.media_type:
            case "application/x-www-form-urlencoded":
                text = self.text(MAX_BODY_BYTES).strip()
                return http_event.unique(http_event.urlencoded(text, MAX_FIELDS))
            case "multipart/form-data":
                parameters = self.header("content-type").partition(";")[2]
                return http_event.unique(_parts(self.text(MAX_BODY_BYTES), parameters))
        raise HttpError(415, "not a form")


class Unsubscribe:
    """Answers the requests of an HTTP API (payload format 2.0)."""

    def __init__(self, preferences: Preferences, secret: CachedSecret) -> None:
        self._preferences = preferences
        self._tokens = Tokens(secret)

    @classmethod
    def of(cls, settings: UnsubscribeSettings) -> "Unsubscribe":
        """What a function's settings describe."""
        arn = settings.unsubscribe_secret_arn
        secret = CachedSecret(clients.secretsmanager(), arn, time.time, SECRET_SECONDS)
        return cls(Preferences.of(settings.preferences_table), secret)

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The page: 200 with how things stand; 404 for a token that is not ours; 400, 405, 413 and 415 for
        requests that no page of ours makes; 503 where the table cannot be reached, 500 where the secret
        cannot be read: then nothing was changed."""
        try:
            request = http_event.read(event, UnsubscribeRequest)
            page = self._page(request)
        except HttpError as fault:
            return _refused(fault)
        except (ClientError, BotoCoreError) as error:
            logger.error("choice not taken: the table cannot be reached", error=str(error))
            return _response(503, failed_page(), {"Retry-After": str(RETRY_AFTER_SECONDS)})
        except InvalidSigningKey as fault:
            logger.error("links cannot be checked", reason=str(fault))
            return _response(500, failed_page())
        return _response(200, "" if request.method == "HEAD" else page)

    def _page(self, request: UnsubscribeRequest) -> str:
        if request.method not in _METHODS:
            raise HttpError(405, "not a method of the page")
        choice = self._choice(request.token)
        if request.method == "POST":
            return self._change(choice, request.fields())
        if self._preferences.get(choice.recipient, choice.topic):
            return opted_out_page(choice)
        return asking_page(choice)

    def _choice(self, token: str) -> Choice:
        try:
            return self._tokens.read(token)
        except Malformed:
            raise HttpError(404, "no token of ours") from None
        except (ClientError, BotoCoreError) as error:
            raise InvalidSigningKey(f"the secret cannot be read: {error}; let the function read it") from None

    def _change(self, choice: Choice, fields: Mapping[str, str]) -> str:
        if fields.get(_CLICK_FIELD) == _CLICK:
            return self._opt_out(choice, "one-click")
        if fields.get(FIELD) == OUT:
            return self._opt_out(choice, "page")
        if fields.get(FIELD) == IN:
            return self._opt_in(choice)
        raise HttpError(400, "a form that says nothing")

    def _opt_out(self, choice: Choice, by: By) -> str:
        if self._preferences.opt_out(choice.recipient, choice.topic, by):
            logger.info("opted out", topic=choice.topic, by=by)
            count("Unsubscribed")
        return opted_out_page(choice)

    def _opt_in(self, choice: Choice) -> str:
        if self._preferences.opt_in(choice.recipient, choice.topic):
            logger.info("opted in again", topic=choice.topic)
            count("Resubscribed")
        return opted_in_page(choice)


def _refused(fault: HttpError) -> dict[str, Any]:
    logger.warning("request refused", status=fault.status, reason=str(fault))
    count("UnsubscribeRefused")
    page = unknown_page() if fault.status == 404 else refused_page()
    return _response(fault.status, page, {"Allow": ", ".join(_METHODS)} if fault.status == 405 else {})


def _response(status: int, page: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"statusCode": status, "headers": {**HEADERS, **(headers or {})}, "body": page}


def _parts(text: str, parameters: str) -> list[tuple[str, str]]:
    """The fields of a multipart form (RFC 7578); files among them are fields like any other."""
    found = _BOUNDARY.search(";" + parameters)
    if found is None:
        raise HttpError(400, "a multipart form without a boundary")
    return list(_fields(text, found[1] or found[2]))


def _fields(text: str, boundary: str) -> Iterator[tuple[str, str]]:
    for part in ("\r\n" + text).split(f"\r\n--{boundary}")[1 : MAX_FIELDS + 1]:
        head, _, value = part.partition("\r\n\r\n")
        name = _NAME.search(head)
        if name:
            yield name[1] or name[2] or "", value


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


def asking_page(choice: Choice) -> str:
    """Whether to opt out; nothing has happened yet."""
    who, what = _named(choice)
    text = f"{who} will then get no more messages about {what}. Nothing has been changed yet."
    return _html(f"No more {what}?", text, _button(OUT, "Unsubscribe"))


def opted_out_page(choice: Choice) -> str:
    """Opted out, now or before."""
    who, what = _named(choice)
    text = f"{who} gets no more messages about {what}. One that is on its way already may still arrive."
    return _html("You are unsubscribed", text, _button(IN, "Get them again"))


def opted_in_page(choice: Choice) -> str:
    """Opted in again."""
    who, what = _named(choice)
    return _html("You are subscribed", f"{who} gets messages about {what}.", _button(OUT, "Unsubscribe"))


def unknown_page() -> str:
    """No link of ours. The page does not say what is wrong with it."""
    text = "Perhaps it was cut off on its way: please open it from the mail itself, whole."
    return _html("This link does not work", text)


def refused_page() -> str:
    """A request that a page of ours does not make."""
    return _html("That did not work", "Please open the link in the mail again, and use the button there.")


def failed_page() -> str:
    """Our own fault."""
    text = "We could not reach our records, and nothing has been changed. Please try again in a minute."
    return _html("Please try again", text)


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


def _html(title: str, text: str, form: str = "") -> str:
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
