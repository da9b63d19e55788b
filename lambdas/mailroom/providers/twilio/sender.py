"""Text messages by Twilio."""

import math
import re
import time
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from mailroom.aws import clients
from mailroom.channels.sms.contract import SmsRequest
from mailroom.clock import Clock
from mailroom.environment import SmsSender
from mailroom.http.provider_api import body_of, epoch, object_in, refusal, retry_after, text_of
from mailroom.message.message import seconds_left
from mailroom.message.outcome import Evidence, NotFound, Outcome, Sent, Unknowable
from mailroom.providers.look_up import is_other_number, is_other_text, search
from mailroom.providers.twilio.account import TwilioAccount, account_at
from mailroom.providers.twilio.refusals import TABLE
from mailroom.providers.twilio_format import TwilioApi
from mailroom.telemetry import redact

VALID_SECONDS = (1, 36_000)
"""Shortest and longest time that a message may wait in Twilio's queue, in seconds.

Source: https://www.twilio.com/docs/api/errors/90007.
"""

RETRIED = "#rc=3&rp=ct,rt,5xx"
"""Fragment of a callback URL that sets Twilio's retries: 3 after a failed connection, a time-out or a 5xx.

Without the fragment, Twilio retries once, and only after a failed connection. A retry after a 4xx would get
the same response. The fragment is not part of the signed URL.
Source: https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides
"""


class TwilioSms:
    """Client of the Messages API of Twilio. The API has neither idempotency keys nor a field for Mailroom's
    reference, so a message whose response was lost is looked up by number, time and text."""

    def __init__(self, account: TwilioAccount, settings: SmsSender, clock: Clock = time.time) -> None:
        """Create the client of an account. In the settings, either the sender or the Messaging Service is
        empty. Twilio sends status callbacks to `callback_url`/reference, or none if `callback_url` is
        empty."""
        self.account = account.account_sid
        self._api = TwilioApi(
            account.login,
            account.account_sid,
            base_url=settings.sms_base_url,
            seconds=settings.submit_seconds,
            reason=lambda status, text: reason_of(status, text)[1],
        )
        self._messages = f"/2010-04-01/Accounts/{quote(account.account_sid, safe='')}/Messages.json"
        service = settings.messaging_service_sid
        self._from = {"MessagingServiceSid": service} if service else {"From": settings.sms_sender}
        self._callback_url = settings.callback_url.rstrip("/")
        self._clock = clock

    @classmethod
    def of(cls, settings: SmsSender) -> "TwilioSms":
        return cls(account_at(clients.secretsmanager(), settings.twilio_secret_arn), settings)

    def submit(self, request: SmsRequest) -> Outcome:
        """Submit the message. Raises if the outcome is unknown: after a 5xx response, an unreadable response,
        or no response."""
        response = self._api.post(self._messages, self._form(request))
        if response.status_code in {200, 201}:
            sid = text_of(body_of(response.status_code, response.text), "sid")
            return Sent(sid, request.facts)
        return outcome_of(response.status_code, response.headers or {}, response.text)

    def find(self, request: SmsRequest, since: float, other_ids: Container[str]) -> Evidence:
        """Look for the requested message in Twilio's list of messages to the same number.

        `since` is compared with `date_created`, because `date_sent` is missing while a message is queued.
        The sender's number is not compared, because a Messaging Service chooses it.

        An account may redact numbers, whose last four digits are then listed as XXXX, and texts:
        https://www.twilio.com/docs/messaging/guides/privacy-message-redaction (2026-11-29).
        """
        return search(
            self._listed(request.to, math.floor(since)),
            self._api.pages(self._messages, {}, "messages"),
            lambda messages: evidence(request, messages, since, other_ids),
        )

    def _form(self, request: SmsRequest) -> dict[str, object]:
        form: dict[str, object] = {"To": request.to, **self._from}
        if request.text:
            form["Body"] = request.text
        if request.media:
            form["MediaUrl"] = list(request.media)
        if self._callback_url:
            form["StatusCallback"] = f"{self._callback_url}/{request.reference}{RETRIED}"
        valid = seconds_left(request.expires, self._clock(), VALID_SECONDS)
        if valid is not None:
            form["ValidityPeriod"] = valid
        return form

    def _listed(self, to: str, oldest: int) -> Iterator[dict[str, Any]]:
        """Yield Twilio's messages to a number, newest first. Stop after the first page with a message created
        before `oldest` (epoch seconds)."""
        for messages in self._api.pages(self._messages, {"To": to}, "messages"):
            yield from messages
            if any(created(message) < oldest for message in messages):
                return


def outcome_of(status: int, headers: Mapping[str, str], text: str) -> Outcome:
    """Classify a response outside 2xx to a submit, by Twilio's error code. For a code that the table lacks
    the configuration is at fault. Raises OutcomeUnknown for a response after which the message may have been
    sent."""
    code, reason = reason_of(status, text)
    row = TABLE.get(str(code))
    if row is not None and 400 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT:
        return row.refusal(reason, retry_after(headers))
    return refusal(status, headers, reason)


def reason_of(status: int, text: str) -> tuple[int, str]:
    """Return Twilio's error code (0 if the response lacks a code), and a sentence for the ledger and the log.

    Errors of Twilio have `code` and `message`. Newer services of Twilio use RFC 9457, with `detail`.
    """
    body = object_in(status, text)
    digits = str(body.get("code") or "")
    code = int(digits) if re.fullmatch("[0-9]{1,9}", digits) else 0
    message = str(body.get("message") or body.get("detail") or body.get("title") or "no reason given")
    return code, f"Twilio answered {status}{f' ({code})' if code else ''}: {redact(message)}"


_TRIAL = "Sent from your Twilio trial account - "

# Characters that Twilio's Smart Encoding replaces, and that NFKC keeps or replaces by other characters. For
# the comparison of texts all kinds of quotes are equal, and all kinds of dashes.
# https://www.twilio.com/docs/messaging/services/smart-encoding-char-list
_ALIKE = {
    "'": '"`´«»‘’‛“”„‟ʹʺʻʼʽˈˊˋˮ❛❜❝❞〝〞',  # noqa: RUF001
    "-": "‐‒–—―−⁃⎼⎽",  # noqa: RUF001
    "<": "‹",  # noqa: RUF001
    ">": "›",  # noqa: RUF001
    "_": "‗",
    "/": "÷⁄∕⧸",  # noqa: RUF001
    "\\": "⧵⧹",  # noqa: RUF001
    "|": "∣⎸⎹⎜⎟⏐",  # noqa: RUF001
    "*": "•⁎∗⊛✢✣✤✥✱✲✳✺✻✼✽❃❉❊❋⧆",  # noqa: RUF001
    "!": "ǃ",  # noqa: RUF001
    ",": "‚、",  # noqa: RUF001
    ".": "。",
    ":": "ː˸⦂꞉",  # noqa: RUF001
    ";": "⁏",
    "(": "❨❪⟮⦅",  # noqa: RUF001
    ")": "❩❫⟯⦆",  # noqa: RUF001
    "{": "❴",  # noqa: RUF001
    "}": "❵",  # noqa: RUF001
    "+": "˖",
    "^": "ˆ",  # noqa: RUF001
    "~": "˜˷∼",  # noqa: RUF001
    "": "\u200b\u2060\ufeff",
}
_TABLE = {ord(variant): plain for plain, variants in _ALIKE.items() for variant in variants}
_CAPITALS = ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "ABCDEFGHIJKLMNOPRSTUVWYZ")
_TABLE |= {ord(small): capital for small, capital in zip(*_CAPITALS, strict=True)}


def created(message: dict[str, Any]) -> float:
    """Return the time at which Twilio created a message, in whole epoch seconds. Raises OutcomeUnknown."""
    return epoch(text_of(message, "date_created"))


def evidence(
    request: SmsRequest, messages: Iterable[dict[str, Any]], since: float, other_ids: Container[str]
) -> Evidence:
    """Return the evidence in Twilio's list of messages (newest first) on whether the requested message was
    sent. Messages in `other_ids` are excluded.

    If several messages match, the message was sent more than once, and the oldest one is returned. The result
    is Unknowable if a listed message may be the requested one although they differ: because Twilio may have
    altered its number or its text, or because the requested text comes from a template, which may have
    changed since the message was submitted.
    """
    oldest = math.floor(since)
    candidates = [message for message in messages if _could_be(message, request, oldest, other_ids)]
    to_number = [message for message in candidates if message.get("to") == request.to]
    matches = [message for message in to_number if same_text(request.text, str(message.get("body") or ""))]
    if matches:
        # Reversed, so that among messages of the same second `min` returns the oldest one.
        first = min(reversed(matches), key=created)
        return Sent(text_of(first, "sid"), request.facts)
    return Unknowable() if candidates else NotFound()


def same_text(submitted: str, listed: str) -> bool:
    """Return whether a text in Twilio's list equals the submitted text, apart from changes that Twilio
    makes."""
    return _plain(listed) in _forms(submitted)


def _forms(submitted: str) -> tuple[str, str]:
    return _plain(submitted), _plain(_TRIAL + submitted)


def _plain(text: str) -> str:
    # The text is translated before and after NFKC: before, because NFKC splits an acute accent into two
    # characters; after, because NFKC turns a fraction such as ½ into digits and a fraction slash.
    text = unicodedata.normalize("NFKC", text.translate(_TABLE)).translate(_TABLE)
    return " ".join(text.split())


def _could_be(message: dict[str, Any], request: SmsRequest, oldest: int, other_ids: Container[str]) -> bool:
    # The SID of a message with media begins with MM, any other SID with SM.
    sid, body = text_of(message, "sid"), _plain(str(message.get("body") or ""))
    return (
        sid not in other_ids
        and sid.startswith("MM" if request.media else "SM")
        and message.get("direction") != "inbound"
        and created(message) >= oldest
        and not is_other_number(message.get("to"), request.to)
        and not (request.exact and is_other_text(body, *_forms(request.text)))
    )
