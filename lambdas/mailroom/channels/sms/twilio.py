"""Text messages by Twilio."""

import math
import time
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from mailroom.channels.sms.contract import SmsRequest
from mailroom.channels.sms.twilio_account import TwilioAccount
from mailroom.channels.twilio_api import TwilioApi
from mailroom.clock import Clock
from mailroom.http.https import NotSent
from mailroom.http.provider import body_of, epoch, object_in, refusal, retry_after, text_of
from mailroom.message.message import seconds_left
from mailroom.message.outcome import Evidence, NotFound, Outcome, Rejected, Retry, Sent, Unknowable
from mailroom.telemetry import redact

VALID_SECONDS = (1, 36_000)
"""How long a message may wait in Twilio's queue; https://www.twilio.com/docs/api/errors/90007."""

RETRIED = "#rc=3&rp=ct,rt,5xx"
"""How often, and after what, Twilio repeats a callback: of itself it does so once, and only after a
failed connection. Not after a 4xx, which would be the same again. The signature leaves the fragment out.
https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides"""


class TwilioSms:
    """Neither idempotency nor a reference of ours: what a lost answer left behind is found by number, time
    and text."""

    def __init__(
        self,
        account: TwilioAccount,
        *,
        base_url: str,
        sender: str,
        messaging_service_sid: str,
        callback_url: str,
        seconds: float,
        clock: Clock = time.time,
    ) -> None:
        """`base_url` is https://api.twilio.com; of `sender` and `messaging_service_sid` one is ""; to
        `callback_url`/reference go status callbacks ("": none); `seconds` is the longest that one request
        may take."""
        self.account = account.account_sid
        self._api = TwilioApi(
            account.login,
            account.account_sid,
            base_url=base_url,
            seconds=seconds,
            reason=lambda status, text: reason_of(status, text)[1],
        )
        self._messages = f"/2010-04-01/Accounts/{quote(account.account_sid, safe='')}/Messages.json"
        self._from = (
            {"MessagingServiceSid": messaging_service_sid} if messaging_service_sid else {"From": sender}
        )
        self._callback_url = callback_url.rstrip("/")
        self._clock = clock

    def submit(self, request: SmsRequest) -> Outcome:
        """Ask for the message. Raises where nobody knows: a 5xx, no answer, or one that cannot be read."""
        try:
            answer = self._api.post(self._messages, self._form(request))
        except NotSent as error:
            return Retry(f"Twilio {error}")
        if answer.status_code in {200, 201}:
            sid = text_of(body_of(answer.status_code, answer.text), "sid")
            return Sent(sid, request.facts)
        return outcome_of(answer.status_code, answer.headers or {}, answer.text)

    def find(self, request: SmsRequest, since: float, known: Container[str]) -> Evidence:
        """Look for it among what Twilio has to that number, by the time of creation: `date_sent` is missing
        while a message waits. From whatever number: a Messaging Service chooses one."""
        return evidence(request, self._listed(request.to, math.floor(since)), since, known)

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
        """Messages to a number, newest first, up to a page that goes back beyond `oldest`."""
        for messages in self._api.pages(self._messages, {"To": to}, "messages"):
            yield from messages
            if any(created(each) < oldest for each in messages):
                return


_LATER = {
    14107,  # the rate at which one number may be answered
    20429,  # too many requests: not processed
    21611,  # the sender's queue is full
    21730,  # maintenance
    30001,  # the queue overflows
    30008,  # unknown error
    30022,  # the campaign's rate
}
_LANDLINE = {
    21614,  # To is no mobile number
    21635,  # To is a landline
}
_UNSUBSCRIBED = 21610
_THE_MESSAGES_OWN = {
    *_LANDLINE,
    _UNSUBSCRIBED,
    21211,  # To is no number
    21217,  # nor does it look like one
    21265,  # To is a short code
    21266,  # To is our own number
    21268,  # To is a premium rate or an information service
    21408,  # the account may not send to that country: anybody may type such a number
    21602,  # no body
    21604,  # no To
    21605,  # the body is too long
    21612,  # To cannot be reached from there
    21617,  # the body is over 1600 characters
    21618,  # the body cannot be sent
    21619,  # no body, and no media
    21620,  # a media URL is not valid
    21623,  # too many media
    30003,  # the handset cannot be reached
    30004,  # the recipient or its carrier blocks
    30005,  # nobody has that number
    30006,  # a landline, or a carrier that cannot be reached
}


def outcome_of(status: int, headers: Mapping[str, str], text: str) -> Outcome:
    """Classify a response outside 2xx to a submit, by Twilio's code. Raises Unclear if it proves nothing."""
    code, reason = reason_of(status, text)
    if 400 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT:
        if code in _LATER:
            return Retry(reason, retry_after(headers))
        if code in _THE_MESSAGES_OWN:
            return Rejected(reason, gone=code in _LANDLINE, opted_out=code == _UNSUBSCRIBED)
    return refusal(status, headers, reason)


def reason_of(status: int, text: str) -> tuple[int, str]:
    """Twilio's code (0: none) and a sentence for the ledger and the log.

    Its errors have `code` and `message`; those by RFC 9457, which newer services answer with, `detail`.
    """
    body = object_in(status, text)
    said = str(body.get("code") or "")
    code = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
    words = str(body.get("message") or body.get("detail") or body.get("title") or "no reason given")
    return code, f"Twilio answered {status}{f' ({code})' if code else ''}: {redact(words)}"


_TRIAL = "Sent from your Twilio trial account - "

# What Smart Encoding replaces and NFKC does not, or not alike: all quotes are one class here, and all dashes.
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
_TABLE = {ord(each): kept for kept, several in _ALIKE.items() for each in several}
_CAPITALS = ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "ABCDEFGHIJKLMNOPRSTUVWYZ")
_TABLE |= {ord(small): capital for small, capital in zip(*_CAPITALS, strict=True)}


def created(message: dict[str, Any]) -> float:
    """When Twilio made it, in epoch seconds; it writes whole ones. Raises Unclear."""
    return epoch(text_of(message, "date_created"))


def evidence(
    request: SmsRequest, messages: Iterable[dict[str, Any]], since: float, known: Container[str]
) -> Evidence:
    """The oldest of the messages that is this one; two of them would mean that it was sent twice.

    Unknowable where one could be it all the same: its text was removed (an account may keep none), or ours is
    a template's, whose wording may be another one since.
    """
    oldest = math.floor(since)
    candidates = [each for each in messages if _could_be(each, request, oldest, known)]
    ours = [each for each in candidates if same_text(request.text, str(each.get("body") or ""))]
    if ours:
        first = min(reversed(ours), key=created)  # the list is newest first, also within a second
        return Sent(text_of(first, "sid"), request.facts)
    if not request.exact:
        return Unknowable() if candidates else NotFound()
    removed = request.text and any(not each.get("body") for each in candidates)
    return Unknowable() if removed else NotFound()


def same_text(ours: str, theirs: str) -> bool:
    """Whether what Twilio shows is what was sent, as far as Twilio keeps it."""
    return _plain(theirs) in {_plain(ours), _plain(_TRIAL + ours)}


def _plain(text: str) -> str:
    # Twice: NFKC makes two characters of an acute accent, and a fraction slash of a fraction.
    text = unicodedata.normalize("NFKC", text.translate(_TABLE)).translate(_TABLE)
    return " ".join(text.split())


def _could_be(message: dict[str, Any], request: SmsRequest, oldest: int, known: Container[str]) -> bool:
    # What the answer leaves out cannot rule a message out. An SID says whether it has media.
    sid = text_of(message, "sid")
    return (
        sid not in known
        and sid.startswith("MM" if request.media else "SM")
        and message.get("direction") != "inbound"
        and message.get("to", request.to) == request.to
        and created(message) >= oldest
    )
