"""The simulated mobile network: every accepted SMS; `sms_numbers.py` says which number does what."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable

from local.providers import sms_numbers
from local.providers.inbox import Accepted, InboxStore
from local.providers.sms_record import Order, Refused, Sms

POOL_NUMBER = "+12025550199"
"""What a Messaging Service sends from."""


class SmsNetwork:
    """All messages in the order of acceptance; safe for many threads."""

    def __init__(self, inbox: InboxStore, clock: Callable[[], float] = time.time) -> None:
        self._inbox = inbox
        self.clock = clock
        self._messages: dict[str, Sms] = {}
        self._submits: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
        self._lock = threading.Lock()

    def submit(self, order: Order) -> Sms:
        """Take a message, or raise Refused."""
        with self._lock:
            self._submits[order.content] += 1
            nth = self._submits[order.content]
            why = sms_numbers.refusal(order.to, nth)
            if why is not None:
                raise Refused(why)
            sms = self._accepted(order, nth)
            self._messages[sms.sid] = sms
        self._inbox.add(Accepted("sms", order.to, sms.sid, _content(sms)))
        return sms

    def message(self, sid: str) -> Sms | None:
        """The one with this sid."""
        return self._messages.get(sid)

    def messages(self) -> list[Sms]:
        """All, newest first, as the provider's list has them."""
        with self._lock:
            return list(reversed(self._messages.values()))

    def _accepted(self, order: Order, nth: int) -> Sms:
        course, error = sms_numbers.course(order.to)
        sid = ("MM" if order.media_urls else "SM") + uuid.uuid4().hex
        return Sms(sid, order, course, error, self.clock(), nth, order.sender or POOL_NUMBER)


def _content(sms: Sms) -> dict[str, object]:
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
