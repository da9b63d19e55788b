"""Twilio's status callbacks: signed as Twilio signs them, in shuffled order, some of them twice.

A callback to `https://{id}.execute-api.{region}.amazonaws.com` is taken to that API at the emulator; its
signature is over the public URL all the same. One to any other host than this machine is dropped: the
simulators ask nobody outside. GET /callbacks lists what was posted and how it was answered.
"""

import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit

from twilio.request_validator import RequestValidator

from local.providers.delay_queue import Later
from local.providers.fax_wire import json_reply
from local.providers.http import Reply, Request
from local.providers.sms_numbers import silent
from local.providers.sms_record import Sms
from local.providers.twilio_account import ACCOUNT_SID, AUTH_TOKEN
from local.providers.twilio_wire import VERSION

SPREAD_SECONDS = 0.6
"""Within so long after the acceptance all of a message's callbacks go out, each at a time of its own."""
DOUBLED = 0.2
"""The part of them that goes out twice."""
TRIES = 5
SECONDS = 20.0
THREADS = 2
SEED = 7
FINAL_BY_RECEIPT = {"delivered", "undelivered"}
"""The carrier's receipt tells of these, with a time of its own."""

_API = re.compile(r"([a-z0-9]+)\.execute-api\.[a-z0-9-]+\.amazonaws\.com")


@dataclass
class Callback:
    """One POST. `answer` is the last answer's status, 0 where none came."""

    sid: str
    status: str
    url: str
    fields: Mapping[str, str]
    tries: int = 0
    answer: int = 0


class TwilioCallbacks:
    """Tells the StatusCallback of each message of its statuses; safe for many threads."""

    prefix = "/callbacks"

    def __init__(
        self, emulator_url: str, seed: int = SEED, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._emulator = emulator_url
        self._random = random.Random(seed)  # noqa: S311 - shuffles
        self._validator = RequestValidator(AUTH_TOKEN)
        self._posted: list[Callback] = []
        self._lock = threading.Lock()
        self.later = Later(self._post_all, clock=clock)

    def accepted(self, sms: Sms) -> None:
        """Have all that will become of the message told, where somebody wants to hear it."""
        if not sms.order.callback or silent(sms.order.to):
            return
        for status in sms.statuses:
            with self._lock:
                times = 2 if self._random.random() < DOUBLED else 1
                delays = [self._random.uniform(0, SPREAD_SECONDS) for _ in range(times)]
            for delay in delays:
                self.later.add(Callback(sms.sid, status, sms.order.callback, fields(sms, status)), delay)

    def handle(self, request: Request) -> Reply:
        if request.method != "GET" or request.path.rstrip("/") != "/callbacks":
            return json_reply(HTTPStatus.NOT_FOUND, {"message": "Try GET /callbacks."})
        return json_reply(HTTPStatus.OK, self.posted())

    def posted(self) -> list[dict[str, Any]]:
        """Every callback that was posted, without its fields; one that was tried again once."""
        with self._lock:
            every = [asdict(each) for each in self._posted]
        return [{name: value for name, value in each.items() if name != "fields"} for each in every]

    def _post_all(self, callbacks: list[Callback]) -> list[Callback]:
        with ThreadPoolExecutor(THREADS) as pool:
            answers = list(pool.map(self._post, callbacks))
        return [each for each, done in zip(callbacks, answers, strict=True) if not done]

    def _post(self, callback: Callback) -> bool:
        """Whether it is over with this callback. Server errors and no answer are tried again, a few times."""
        callback.tries += 1
        place = reached(callback.url, self._emulator)
        if place is None:
            print(f"dropped a callback to {urlsplit(callback.url).hostname}", flush=True)
            return True
        signature = self._validator.compute_signature(callback.url, dict(callback.fields))
        callback.answer = _posted(place, dict(callback.fields), signature)
        over = 0 < callback.answer < 500 or callback.tries >= TRIES
        if over:
            with self._lock:
                self._posted.append(callback)
        return over


def fields(sms: Sms, status: str) -> dict[str, str]:
    """The form that tells of a status."""
    told = {
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
        told["MessagingServiceSid"] = sms.order.service
    if sms.error is not None and status == sms.course:
        told["ErrorCode"] = str(sms.error)
    if status in FINAL_BY_RECEIPT:
        told["RawDlrDoneDate"] = time.strftime("%y%m%d%H%M", time.gmtime(sms.created))
    return told


def reached(url: str, emulator: str) -> str | None:
    """Where this machine finds what is public under `url`; None for the world outside."""
    parts = urlsplit(url)
    api = _API.fullmatch(parts.hostname or "")
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    if api is not None:
        return f"{emulator}/restapis/{api[1]}/$default/_user_request_{path}"
    return url if parts.hostname == "127.0.0.1" and parts.scheme == "http" else None


def _posted(url: str, form: Mapping[str, str], signature: str) -> int:
    """The answer's status; 0 where none came."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=SECONDS)
    headers = {
        "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
        "User-Agent": "TwilioProxy/1.1",
        "X-Twilio-Signature": signature,
        "I-Twilio-Idempotency-Token": form["MessageSid"],
    }
    try:
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request("POST", path, body=urlencode(form), headers=headers)
        return connection.getresponse().status
    except (HTTPException, OSError):
        return 0
    finally:
        connection.close()
