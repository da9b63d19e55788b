"""The simulated mobile network: every accepted SMS, and what the simulated numbers do.

The last two digits of a number that ends in 555 01xx choose; every other number gets every message. `First`
counts the submits of one content to one number.

| 555 01… | what happens                                                                             |
|---------|------------------------------------------------------------------------------------------|
| 30      | accepted, then undelivered: unreachable handset (30003)                                  |
| 31      | accepted, then undelivered: unknown handset (30005)                                      |
| 32      | accepted, then undelivered: landline or unreachable carrier (30006)                      |
| 33      | accepted, then failed: unknown error (30008)                                             |
| 34      | accepted and sent; the carrier reports nothing more                                      |
| 40      | refused: no valid number (21211)                                                         |
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
"""

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mailroom_local.providers.http import Occurrences, SubmitRefused, number_ending
from mailroom_local.providers.inbox import Accepted, InboxStore

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
ENDED_SECONDS = 0.3
"""Seconds after acceptance: handed to the carrier, and ended."""
STOP_WORDS = {"STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"}
START_WORDS = {"START", "YES", "UNSTOP"}
"""Twilio's own: https://www.twilio.com/docs/messaging/tutorials/advanced-opt-out."""
POOL_NUMBER = "+12025550199"
"""Number from which a Messaging Service sends."""


def refusal_of(number: str, nth: int) -> Refusal | None:
    """Why the provider refuses the n-th submit; None if it accepts."""
    ending = number_ending(number)
    return REFUSED.get(ending) or (REFUSED_FIRST.get(ending) if nth == 1 else None)


def course_of(number: str) -> tuple[Course, int | None]:
    """How a message ends once it is accepted, and the error code that says why."""
    return COURSES.get(number_ending(number), DELIVERED)


def answer_to(number: str, nth: int) -> Answer:
    """How the n-th submit is answered once it is accepted."""
    return ANSWERED_FIRST.get(number_ending(number), "at once") if nth == 1 else "at once"


def is_silent(number: str) -> bool:
    """Whether the number is one without callbacks."""
    return number_ending(number) == "57"


@dataclass(frozen=True)
class SmsOrder:
    """Request to a provider. A text that is not given is an empty string."""

    to: str
    sender: str = ""
    service: str = ""
    body: str = ""
    media_urls: tuple[str, ...] = ()
    callback: str = ""
    validity_seconds: int | None = None

    @property
    def content(self) -> tuple[str, str, tuple[str, ...]]:
        """Content that all submits of one message share."""
        return self.to, self.body, tuple(url.partition("?")[0] for url in self.media_urls)


@dataclass(frozen=True)
class SimulatedSms:
    """An accepted message; times are epoch seconds. `number` is what it is sent from."""

    sid: str
    order: SmsOrder
    course: Course
    error: int | None
    created: float
    attempt: int
    number: str

    @property
    def statuses(self) -> tuple[str, ...]:
        """Statuses that the message passes through, in Twilio's words. With a Messaging Service it starts as
        accepted."""
        start = ("accepted", "queued") if self.order.service else ("queued",)
        match self.course:
            case "failed":
                return (*start, "failed")
            case "sent":
                return (*start, "sent")
        return (*start, "sent", self.course)

    def status(self, moment: float) -> str:
        """The status in Twilio's words."""
        if moment >= self.created + ENDED_SECONDS:
            return self.statuses[-1]
        sent = moment >= self.created + SENT_SECONDS
        return "sent" if sent and "sent" in self.statuses else self.statuses[0]

    def sent_at(self, moment: float) -> float | None:
        """Time at which the message was handed to the carrier; None if that has not happened."""
        sent = self.created + SENT_SECONDS
        return sent if moment >= sent and "sent" in self.statuses else None


class SmsNetwork:
    """Accepted messages in the order of acceptance; safe for many threads."""

    def __init__(self, inbox: InboxStore, clock: Callable[[], float] = time.time) -> None:
        self._inbox = inbox
        self.clock = clock
        self._messages: dict[str, SimulatedSms] = {}
        self._received: dict[str, SimulatedSms] = {}
        self._stopped: set[str] = set()
        self._submits = Occurrences()
        self._lock = threading.Lock()

    def submit(self, order: SmsOrder) -> SimulatedSms:
        """Take a message, or raise SubmitRefused."""
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
        """A text from a phone to a number of ours. STOP and START count for all of our numbers."""
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
        """The text to us with this sid."""
        return self._received.get(sid)

    def message(self, sid: str) -> SimulatedSms | None:
        return self._messages.get(sid)

    def messages(self) -> list[SimulatedSms]:
        """Return the messages, newest first like the provider's list."""
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
