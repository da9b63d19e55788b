"""Handles the requests to opt-out links: recipients opt out of a topic with one click, and can opt in again.
A link with an encrypted token opens the recipient's page of preferences instead, with all topics.

A mail program posts `List-Unsubscribe=One-Click` (RFC 8058), and the page behind the link posts another
field. GET and HEAD only return the page, because programs that scan mails follow every link. Responses never
redirect.
"""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.aws import clients
from mailroom.aws.secret import CachedSecret
from mailroom.environment import UnsubscribeSettings
from mailroom.errors import HttpError, InvalidSecret, Malformed
from mailroom.http import event as http_event
from mailroom.recipients.choices import By, Preferences
from mailroom.recipients.unsubscribe_links import ONE_CLICK, Choice, Tokens
from mailroom.telemetry import count, logger
from mailroom.unsubscribe.page import FIELD, IN, NOTHING, OUT, Page, PageSettings, headers_of

T = TypeVar("T")

SECRET_SECONDS = 60
"""Seconds for which a removed key may still be valid. A new key is valid at once, because an unknown
signature makes the function read the secret again."""
_CLICK_FIELD, _CLICK = ONE_CLICK.split("=")
RETRY_AFTER_SECONDS = 60
_METHODS = ("GET", "HEAD", "POST")

MAX_BODY_BYTES = 8 * 1024
"""Maximum number of bytes of a body. Mail programs and the page post about 200 bytes."""
MAX_FIELDS = 20
_CLICK_PART = re.compile(rf'\b(?i:name)="?{_CLICK_FIELD}"?[^\r\n]*(?:\r\n[^\r\n]+)*\r\n\r\n{_CLICK}\r\n--')
"""Pattern of the part of a multipart form (RFC 7578) that a mail program posts. Other fields in this encoding
are ignored. The form's boundary is not checked, because only a holder of the signed link can post the
form."""


class UnsubscribeRequest(http_event.HttpRequest, frozen=True, kw_only=True, rename="camel"):
    """Request to an opt-out link."""

    path_parameters: dict[str, str] | None = None

    @property
    def token(self) -> str | None:
        """Unverified token in the path; None if the path is a route of a provider that is switched off."""
        return (self.path_parameters or {}).get("token")

    def fields(self) -> dict[str, str]:
        """Return the fields of a form. The one-click field counts with any content type: RFC 8058 names two
        encodings of forms, but some mail programs post the same text as text/plain, or without a type. Other
        fields are only read in an urlencoded form.

        Sources: https://www.rfc-editor.org/rfc/rfc8058#section-3.2,
        https://github.com/Amunak/thunderbird-list-unsubscribe-addon/pull/9 (2026-11-29).
        Raises HttpError: 415 if the body is not a form, 413 if it is too large, 400 for an invalid form or a
        repeated field.
        """
        text = self.text(MAX_BODY_BYTES).strip()
        if text == ONE_CLICK or _CLICK_PART.search(text):
            return {_CLICK_FIELD: _CLICK}
        if self.media_type == "multipart/form-data":
            return {}
        if self.media_type != "application/x-www-form-urlencoded":
            raise HttpError(415, "the body is not a form")
        return http_event.unique(http_event.urlencoded(text, MAX_FIELDS))


class Unsubscribe:
    """Handler of the opt-out page's requests, from an API Gateway HTTP API (payload format 2.0)."""

    def __init__(self, preferences: Preferences, secret: CachedSecret, page: PageSettings) -> None:
        self._preferences = preferences
        self._tokens = Tokens(secret)
        self._settings = page

    @classmethod
    def of(cls, settings: UnsubscribeSettings) -> "Unsubscribe":
        """Build the application from the function's settings."""
        arn = settings.unsubscribe_secret_arn
        secret = CachedSecret(clients.secretsmanager(), arn, time.time, SECRET_SECONDS)
        page = PageSettings.read(settings.unsubscribe_page)
        return cls(Preferences.of(settings.preferences_table), secret, page)

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return a page with a status. 200: the page shows the recipient's choice. 404: the token is invalid.
        410: the path is a route of a provider that is switched off. 400, 405, 413 and 415: the request is not
        one that Mailroom's pages make. 503: the table of choices cannot be reached. 500: the secret cannot be
        read. After 500 and 503 the choice is unchanged."""
        page = Page(self._settings)
        try:
            request = http_event.read(event, UnsubscribeRequest)
            page = Page(self._settings, request.header("accept-language"))
            html = self._html(request, page)
        except HttpError as fault:
            return _refused(fault, page)
        except (ClientError, BotoCoreError) as error:
            logger.error("choice not stored: the table cannot be reached", error=str(error))
            return _response(503, page.failed(), {"Retry-After": str(RETRY_AFTER_SECONDS)})
        except InvalidSecret as fault:
            logger.error("links cannot be checked", reason=str(fault))
            return _response(500, page.failed())
        response = _response(200, html)
        return {**response, "body": ""} if request.method == "HEAD" else response

    def _html(self, request: UnsubscribeRequest, page: Page) -> str:
        if request.method not in _METHODS:
            raise HttpError(405, "the method is not allowed")
        if (token := request.token) is None:
            raise HttpError(410, "this stage does not have this feature")
        # A signed token has a dot before the signature, and an encrypted token has none.
        if "." not in token:
            return self._chosen(self._content(self._tokens.open, token), request, page)
        choice = self._content(self._tokens.read, token)
        if request.method == "POST":
            return self._change(choice, request.fields(), page)
        if self._preferences.get(choice.recipient, choice.topic):
            return page.opted_out(choice)
        return page.asking(choice)

    def _chosen(self, recipient: str, request: UnsubscribeRequest, page: Page) -> str:
        """Return the page of preferences, after the choice of a POST request was stored."""
        choices = self._preferences.choices(recipient)
        if request.method != "POST":
            return page.preferences(recipient, choices, saved=False)
        topics, fields = self._settings.topics, request.fields()
        if fields.get(OUT) in topics:
            self._opt_out(Choice(recipient, fields[OUT]), "preferences")
        elif fields.get(IN) in topics:
            self._opt_in(Choice(recipient, fields[IN]), "preferences")
        elif NOTHING in fields:
            for topic in topics:
                if topic not in choices or not choices[topic].out:
                    self._opt_out(Choice(recipient, topic), "preferences")
        else:
            raise HttpError(400, "the form has no known field or topic")
        return page.preferences(recipient, self._preferences.choices(recipient), saved=True)

    def _content(self, read: Callable[[str], T], token: str) -> T:
        """Return the content of a token. Raises HttpError 404 for an invalid token, and InvalidSecret."""
        try:
            return read(token)
        except Malformed:
            raise HttpError(404, "not a token of Mailroom") from None
        except (ClientError, BotoCoreError) as error:
            raise InvalidSecret(f"the secret cannot be read: {error}; let the function read it") from None

    def _change(self, choice: Choice, fields: Mapping[str, str], page: Page) -> str:
        if fields.get(_CLICK_FIELD) == _CLICK:
            self._opt_out(choice, "one-click")
        elif fields.get(FIELD) == OUT:
            self._opt_out(choice, "page")
        elif fields.get(FIELD) == IN:
            self._opt_in(choice, "page")
            return page.opted_in(choice)
        else:
            raise HttpError(400, "the form has no known field")
        return page.opted_out(choice)

    def _opt_out(self, choice: Choice, by: By) -> None:
        if self._preferences.opt_out(choice.recipient, choice.topic, by):
            logger.info("opted out", topic=choice.topic, by=by)
            count("Unsubscribed")

    def _opt_in(self, choice: Choice, by: By) -> None:
        if self._preferences.opt_in(choice.recipient, choice.topic, by):
            logger.info("opted in again", topic=choice.topic, by=by)
            count("Resubscribed")


def _refused(fault: HttpError, page: Page) -> dict[str, Any]:
    logger.warning("request refused", status=fault.status, reason=str(fault))
    count("UnsubscribeRefused")
    html = page.unknown() if fault.status in (404, 410) else page.refused()
    return _response(fault.status, html, {"Allow": ", ".join(_METHODS)} if fault.status == 405 else {})


def _response(status: int, html: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"statusCode": status, "headers": {**headers_of(html), **(headers or {})}, "body": html}
