"""Text messages by Twilio."""

import math
import time
from collections.abc import Container, Iterator
from typing import Any
from urllib.parse import quote

from mailroom.channels.sms.provider import SmsRequest, seconds_left
from mailroom.channels.sms.twilio_account import TwilioAccount
from mailroom.channels.sms.twilio_client import client, next_page
from mailroom.channels.sms.twilio_errors import outcome_of, reason_of
from mailroom.channels.sms.twilio_find import created, evidence
from mailroom.clock import Clock
from mailroom.http.https import NotSent, Unclear
from mailroom.http.provider import body_of, text_of
from mailroom.message.outcome import Evidence, Outcome, Retry, Sent

VALID_SECONDS = (1, 36_000)
"""How long a message may wait in Twilio's queue; https://www.twilio.com/docs/api/errors/90007."""

RETRIED = "#rc=3&rp=ct,rt,5xx"
"""How often, and after what, Twilio repeats a callback: of itself it does so once, and after a failed
connection alone. Not after a 4xx, which would be the same again. The signature leaves the fragment out.
https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides"""

_PAGE_SIZE = 1000  # the most there is
_MAX_PAGES = 5


class TwilioSms:
    """Neither idempotency nor a reference of ours: what a lost answer left behind is found by number, time
    and text."""

    provider = "twilio"

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
        self._client = client(*account.login, account.account_sid, seconds)
        self._base = base_url.rstrip("/")
        path = f"/2010-04-01/Accounts/{quote(account.account_sid, safe='')}/Messages.json"
        self._messages = self._base + path
        self._from = (
            {"MessagingServiceSid": messaging_service_sid} if messaging_service_sid else {"From": sender}
        )
        self._callback_url = callback_url.rstrip("/")
        self._clock = clock

    def submit(self, request: SmsRequest) -> Outcome:
        """Ask for the message. A 5xx, no answer, or one that cannot be read raises: then nobody knows."""
        try:
            answer = self._client.request("POST", self._messages, data=self._form(request))
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
        page = self._get(self._messages, {"To": to, "PageSize": _PAGE_SIZE})
        for number in range(1, _MAX_PAGES + 1):
            messages = page.get("messages")
            if not isinstance(messages, list):
                raise Unclear("a list of messages without messages")
            yield from messages
            following = page.get("next_page_uri")
            if not following or any(created(each) < oldest for each in messages):
                return
            if number < _MAX_PAGES:
                page = self._get(next_page(self._base, str(following)))
        raise Unclear(f"a list of messages of more than {_MAX_PAGES} pages")

    def _get(self, url: str, params: dict[str, object] | None = None) -> dict[str, Any]:
        answer = self._client.request("GET", url, params=params)
        if answer.status_code != 200:
            raise Unclear(reason_of(answer.status_code, answer.text)[1])
        return body_of(answer.status_code, answer.text)
