"""Twilio's status callbacks: signed as Twilio signs them, in shuffled order, some of them twice.

A callback to `https://{id}.execute-api.{region}.amazonaws.com` goes to that API at the emulator, with the
signature of the public URL. A callback to any other host but this machine is dropped: the simulators ask
this machine only. GET /callbacks lists what was posted and how it was answered.
"""

import random
import re
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request

from twilio.request_validator import RequestValidator

from mailroom.clock import Clock
from mailroom_local.aws import open_url
from mailroom_local.providers.delay_queue import DelayQueue, Disorder
from mailroom_local.providers.http import Pages
from mailroom_local.providers.sms import SimulatedSms, is_silent
from mailroom_local.providers.twilio import ACCOUNT_SID, AUTH_TOKEN, VERSION
from mailroom_local.providers.upstream import path_of

SPREAD_SECONDS = 0.6
"""How long after the acceptance the last of a message's callbacks goes out, each at a time of its own."""
DOUBLED = 0.2
"""The part of the callbacks that goes out twice."""
TRIES = 5
SECONDS = 20.0
THREADS = 2
SEED = 7
FINAL_BY_RECEIPT = {"delivered", "undelivered"}
"""Statuses that come from the carrier's receipt, with its time."""

_API = re.compile(r"([a-z0-9]+)\.execute-api\.[a-z0-9-]+\.amazonaws\.com")


@dataclass
class StatusCallback:
    """One POST. `answer` is the last answer's status, 0 where none came."""

    sid: str
    status: str
    url: str
    fields: Mapping[str, str]
    tries: int = 0
    answer: int = 0


class StatusCallbacks:
    """Posts the statuses of each message to its StatusCallback; safe for many threads."""

    def __init__(self, emulator_url: str, seed: int = SEED, clock: Clock = time.monotonic) -> None:
        self._emulator = emulator_url
        self._random = random.Random(seed)  # noqa: S311 - shuffles
        self._validator = RequestValidator(AUTH_TOKEN)
        self._posted: list[StatusCallback] = []
        self._lock = threading.Lock()
        self.disorder = Disorder(SPREAD_SECONDS, DOUBLED)
        self.queue = DelayQueue(self._post_all, clock=clock)

    def accepted(self, sms: SimulatedSms) -> None:
        """Plan the callbacks of a message that has a StatusCallback."""
        if not sms.order.callback or is_silent(sms.order.to):
            return
        for status in sms.statuses:
            with self._lock:
                times = 2 if self._random.random() < self.disorder.doubled else 1
                delays = [self._random.uniform(0, self.disorder.spread_seconds) for _ in range(times)]
            for delay in delays:
                self.queue.add(
                    StatusCallback(sms.sid, status, sms.order.callback, fields(sms, status)), delay
                )

    def pages(self) -> Pages:
        return Pages("/callbacks", {"GET /callbacks": lambda _: self.posted()})

    def posted(self) -> list[dict[str, Any]]:
        """Every callback that was posted, without its fields; one that was tried again is listed once."""
        with self._lock:
            every = [asdict(each) for each in self._posted]
        return [{name: value for name, value in each.items() if name != "fields"} for each in every]

    def _post_all(self, callbacks: list[StatusCallback]) -> list[StatusCallback]:
        with ThreadPoolExecutor(THREADS) as pool:
            answers = list(pool.map(self._post, callbacks))
        return [each for each, done in zip(callbacks, answers, strict=True) if not done]

    def _post(self, callback: StatusCallback) -> bool:
        """Whether this callback is done. Server errors and missing answers are tried again, a few times."""
        callback.tries += 1
        place = reached(callback.url, self._emulator)
        if place is None:
            print(f"dropped a callback to {urlsplit(callback.url).hostname}", flush=True)
            return True
        signature = self._validator.compute_signature(callback.url, dict(callback.fields))
        callback.answer = post_form(place, dict(callback.fields), signature)
        over = 0 < callback.answer < 500 or callback.tries >= TRIES
        if over:
            with self._lock:
                self._posted.append(callback)
        return over


def fields(sms: SimulatedSms, status: str) -> dict[str, str]:
    """The form that reports a status."""
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


def reached(url: str, emulator: str) -> str | None:
    """Where this machine reaches what is public under `url`; None for the world outside."""
    parts = urlsplit(url)
    api = _API.fullmatch(parts.hostname or "")
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    if api is not None:
        return f"{emulator}{path_of(api[1])}{path}"
    return url if parts.hostname == "127.0.0.1" and parts.scheme == "http" else None


def post_form(url: str, form: Mapping[str, str], signature: str) -> int:
    """POST as Twilio does; the answer's status, 0 where none came."""
    headers = {
        "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
        "User-Agent": "TwilioProxy/1.1",
        "X-Twilio-Signature": signature,
        "I-Twilio-Idempotency-Token": form["MessageSid"],
    }
    request = Request(url, urlencode(form).encode(), headers, method="POST")  # noqa: S310 - the stage's own
    try:
        with open_url(request, SECONDS) as answer:
            return answer.status
    except HTTPError as error:
        with error:
            return error.code
    except (HTTPException, OSError):
        return 0
