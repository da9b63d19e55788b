"""Twilio's status callbacks, signed as by Twilio, in shuffled order, and some of them twice.

A callback to a host other than this machine is dropped: the simulators only send requests to this machine.
"""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from twilio.request_validator import RequestValidator

from mailroom.clock import Clock
from mailroom_local.providers.delay_queue import DelayQueue, post
from mailroom_local.providers.sms import SimulatedSms, is_silent
from mailroom_local.providers.twilio import ACCOUNT_SID, AUTH_TOKEN, VERSION

TRIES = 5
THREADS = 2
FINAL_BY_RECEIPT = {"delivered", "undelivered"}
"""Statuses from a delivery receipt of the carrier. Their callbacks contain the time of the receipt."""


class StatusCallback(NamedTuple):
    """POST request, and the number of its earlier tries."""

    url: str
    fields: Mapping[str, str]
    tries: int = 0


class StatusCallbacks:
    """Posts the statuses of each message to its StatusCallback. Thread-safe."""

    def __init__(self, clock: Clock = time.time) -> None:
        self.queue = DelayQueue(self._post_all, clock=clock)

    def __call__(self, sms: SimulatedSms) -> None:
        """Schedule the callbacks of a message that has a StatusCallback."""
        url = sms.order.callback
        if not url or is_silent(sms.order.to):
            return
        if urlsplit(url).hostname != "127.0.0.1":
            print(f"dropped the callbacks to {urlsplit(url).hostname}", flush=True)
            return
        for status in sms.statuses:
            self.queue.report(StatusCallback(url, fields(sms, status)))

    def _post_all(self, callbacks: list[StatusCallback]) -> list[StatusCallback]:
        """Post callbacks. Return the callbacks to retry: those with a server error or no response, up to
        TRIES times."""
        with ThreadPoolExecutor(THREADS) as pool:
            statuses = list(pool.map(lambda callback: post_form(callback.url, callback.fields), callbacks))
        return [
            callback._replace(tries=callback.tries + 1)
            for callback, status in zip(callbacks, statuses, strict=True)
            if not 0 < status < 500 and callback.tries + 1 < TRIES
        ]


def fields(sms: SimulatedSms, status: str) -> dict[str, str]:
    """Return the form fields that report a status."""
    form = {
        "AccountSid": ACCOUNT_SID,
        "ApiVersion": VERSION,
        "From": sms.number,
        "MessageSid": sms.sid,
        "MessageStatus": status,
        "SmsSid": sms.sid,
        "SmsStatus": status,
        "To": sms.order.to,
    }
    if sms.order.service:
        form["MessagingServiceSid"] = sms.order.service
    if sms.error is not None and status == sms.course:
        form["ErrorCode"] = str(sms.error)
    if status in FINAL_BY_RECEIPT:
        form["RawDlrDoneDate"] = time.strftime("%y%m%d%H%M", time.gmtime(sms.created))
    return form


def post_form(url: str, form: Mapping[str, str]) -> int:
    """POST a signed form like Twilio. Return the status of the response, or 0 if there was no response."""
    headers = {
        "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
        "User-Agent": "TwilioProxy/1.1",
        "X-Twilio-Signature": RequestValidator(AUTH_TOKEN).compute_signature(url, dict(form)),
        "I-Twilio-Idempotency-Token": form["MessageSid"],
    }
    return post(url, headers, urlencode(form).encode())
