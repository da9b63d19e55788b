"""Simulated mobile network: all accepted SMS, and the behaviour of its numbers.

The last two digits of a number that ends in 555 01xx determine the outcome. Messages to other numbers are
delivered. `First` counts the submits of the same content to the same number.

| 555 01… | what happens                                                                             |
|---------|------------------------------------------------------------------------------------------|
| 30      | accepted, then undelivered: unreachable handset (30003)                                  |
| 31      | accepted, then undelivered: unknown handset (30005)                                      |
| 32      | accepted, then undelivered: landline or unreachable carrier (30006)                      |
| 33      | accepted, then failed: unknown error (30008)                                             |
| 34      | accepted and sent; the carrier reports nothing more                                      |
| 40      | refused: invalid number (21211)                                                          |
| 41      | refused: a landline (21614)                                                              |
| 42      | refused: the recipient has unsubscribed (21610)                                          |
| 43      | refused: its country is not permitted (21408)                                            |
| 50      | throttled (429, 20429), each time                                                        |
| 51      | throttled first, then delivered                                                          |
| 52      | a server error first (500, nothing accepted), then delivered                             |
| 53      | accepted and delivered, but the first answer is a server error (500)                     |
| 54      | accepted and delivered, but the first answer is lost: the connection breaks              |
| 56      | a server error (500, nothing accepted), each time                                        |
| 57      | accepted and sent, the first answer is lost, and no status callback ever comes           |
| others  | delivered                                                                                |

A number +1 555 00x xxxx is refused with Twilio's error code xxxxx, or, for a code of an event, its messages
are undelivered with this code.
"""

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mailroom.providers.twilio.refusals import EVENTS
from mailroom_local.providers.http import Occurrences, SubmitRefused, number_ending
from mailroom_local.providers.inbox import Accepted, InboxStore
from mailroom_local.providers.rows import number_code

Refusal = Literal["invalid", "landline", "unsubscribed", "forbidden", "throttled", "error"]
Course = Literal["delivered", "undelivered", "failed", "sent"]
Answer = Literal["at once", "error", "lost"]

REFUSED: dict[str, Refusal] = {
    "40": "invalid",
    "41": "landline",
    "42": "unsubscribed",
    "43": "forbidden",
    "50": "throttled",
    "56": "error",
}
REFUSED_FIRST: dict[str, Refusal] = {"51": "throttled", "52": "error"}
COURSES: dict[str, tuple[Course, int | None]] = {
    "30": ("undelivered", 30003),
    "31": ("undelivered", 30005),
    "32": ("undelivered", 30006),
    "33": ("failed", 30008),
    "34": ("sent", None),
    "57": ("sent", None),
}
ANSWERED_FIRST: dict[str, Answer] = {"53": "error", "54": "lost", "57": "lost"}
DELIVERED: tuple[Course, int | None] = ("delivered", None)
SENT_SECONDS = 0.1
"""Seconds from the acceptance of a message until it is handed to the carrier."""
ENDED_SECONDS = 0.3
"""Seconds from the acceptance of a message until its final status."""
STOP_WORDS = {"STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"}
START_WORDS = {"START", "YES", "UNSTOP"}
"""Twilio's default keywords to opt out and to opt in again:
https://www.twilio.com/docs/messaging/tutorials/advanced-opt-out."""
POOL_NUMBER = "+12025550199"
"""Number from which a Messaging Service sends."""


def refusal_of(number: str, nth: int) -> Refusal | None:
    """Return why the provider refuses the n-th submit, or None if it accepts the submit."""
    ending = number_ending(number)
    return REFUSED.get(ending) or (REFUSED_FIRST.get(ending) if nth == 1 else None)


def course_of(number: str) -> tuple[Course, int | None]:
    """Return the final status of an accepted message, and the error code of a failure."""
    if (code := number_code(number)) in EVENTS:
        return "undelivered", int(code)
    return COURSES.get(number_ending(number), DELIVERED)


def answer_to(number: str, nth: int) -> Answer:
    """Return the form of the response to the n-th submit, after the provider has accepted it."""
    return ANSWERED_FIRST.get(number_ending(number), "at once") if nth == 1 else "at once"


def is_silent(number: str) -> bool:
    """Return whether messages to the number cause no callbacks."""
    return number_ending(number) == "57"


@dataclass(frozen=True)
class SmsOrder:
    """Request to send an SMS. Missing texts are empty strings."""

    to: str
    sender: str = ""
    service: str = ""
    body: str = ""
    media_urls: tuple[str, ...] = ()
    callback: str = ""
    validity_seconds: int | None = None

    @property
    def content(self) -> tuple[str, str, tuple[str, ...]]:
        """Recipient, text and media, which are the same in all submits of one message."""
        return self.to, self.body, tuple(url.partition("?")[0] for url in self.media_urls)


@dataclass(frozen=True)
class SimulatedSms:
    """An accepted message. Times are in epoch seconds. `number` is the sender's number."""

    sid: str
    order: SmsOrder
    course: Course
    error: int | None
    created: float
    attempt: int
    number: str

    @property
    def statuses(self) -> tuple[str, ...]:
        """Statuses of the message in order, in Twilio's words. With a Messaging Service, the first is
        `accepted`."""
        start = ("accepted", "queued") if self.order.service else ("queued",)
        match self.course:
            case "failed":
                return (*start, "failed")
            case "sent":
                return (*start, "sent")
        return (*start, "sent", self.course)

    def status(self, moment: float) -> str:
        """Return the status at `moment`, in Twilio's words."""
        if moment >= self.created + ENDED_SECONDS:
            return self.statuses[-1]
        sent = moment >= self.created + SENT_SECONDS
        return "sent" if sent and "sent" in self.statuses else self.statuses[0]

    def sent_at(self, moment: float) -> float | None:
        """Return the time at which the message was handed to the carrier, or None if that has not happened at
        `moment`."""
        sent = self.created + SENT_SECONDS
        return sent if moment >= sent and "sent" in self.statuses else None


class SmsNetwork:
    """Accepted messages in the order of acceptance. Thread-safe."""

    def __init__(self, inbox: InboxStore, clock: Callable[[], float] = time.time) -> None:
        self._inbox = inbox
        self.clock = clock
        self._messages: dict[str, SimulatedSms] = {}
        self._received: dict[str, SimulatedSms] = {}
        self._stopped: set[str] = set()
        self._submits = Occurrences()
        self._lock = threading.Lock()

    def submit(self, order: SmsOrder) -> SimulatedSms:
        """Accept a message, or raise SubmitRefused."""
        nth = self._submits.nth(order.content)
        reason = "unsubscribed" if order.to in self._stopped else refusal_of(order.to, nth)
        if reason is not None:
            raise SubmitRefused(reason)
        course, error = course_of(order.to)
        sid = ("MM" if order.media_urls else "SM") + uuid.uuid4().hex
        with self._lock:
            sms = SimulatedSms(sid, order, course, error, self.clock(), nth, order.sender or POOL_NUMBER)
            self._messages[sid] = sms
        self._inbox.add(Accepted("sms", order.to, sms.sid, _content(sms)))
        return sms

    def receive(self, sender: str, to: str, body: str) -> SimulatedSms:
        """Receive a message from a phone to a number of the stage. STOP and START apply to all numbers of the
        stage."""
        sid = "SM" + uuid.uuid4().hex
        sms = SimulatedSms(sid, SmsOrder(to, sender, body=body), "delivered", None, self.clock(), 1, sender)
        with self._lock:
            self._received[sid] = sms
            if body.strip().upper() in STOP_WORDS:
                self._stopped.add(sender)
            if body.strip().upper() in START_WORDS:
                self._stopped.discard(sender)
        return sms

    def received(self, sid: str) -> SimulatedSms | None:
        """Return the received message with this SID."""
        return self._received.get(sid)

    def message(self, sid: str) -> SimulatedSms | None:
        return self._messages.get(sid)

    def messages(self) -> list[SimulatedSms]:
        """Return the accepted messages, newest first like the provider's list."""
        with self._lock:
            return list(reversed(self._messages.values()))


def _content(sms: SimulatedSms) -> dict[str, object]:
    order = sms.order
    return {
        "subject": order.body or "(media)",
        "text": order.body,
        "from": order.sender,
        "messaging_service": order.service,
        "media_urls": list(order.media_urls),
        "callback": order.callback,
        "validity_seconds": order.validity_seconds,
        "attempt": sms.attempt,
        "course": sms.course,
    }
