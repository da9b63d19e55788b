"""A model of Resend on the worlds' clock."""

import json
import math
from typing import Any

from mailroom.errors import ConnectError, OutcomeUnknown
from mailroom.message.outcome import Conflict, Outcome, Rejected, Retry, Sent
from mailroom.providers.resend.sender import Request
from tests.support.faults.outside import Clock, Trouble

KEY_SECONDS = 24 * 3600


class Resend:
    """Resend behind the adapter.

    For a day, it answers a repeated request with the same key like the first, and rejects a different request
    with that key. A recipient's name chooses the response, unless `trouble` chooses it for all.
    """

    account = "1"

    def __init__(self, clock: Clock) -> None:
        self.accepted: list[dict[str, Any]] = []
        self.trouble: Trouble | None = None
        self._clock = clock
        self._answered: dict[str, tuple[float, bytes, Sent]] = {}
        self._throttled: set[str] = set()

    def submit(self, request: Request) -> Outcome:
        if self.trouble == "down":
            raise ConnectError("cannot be reached")
        if self.trouble == "throttles":
            return Retry("Resend answered 429")
        at, body, answer = self._answered.get(request.key, (-math.inf, b"", Sent("")))
        if self._clock() < at + KEY_SECONDS:
            return answer if body == request.body else Conflict("another request has this key")
        mail = json.loads(request.body)
        (recipient,) = mail["to"]
        if recipient.startswith("throttled-once") and recipient not in self._throttled:
            self._throttled.add(recipient)
            return Retry("Resend answered 429")
        if recipient.startswith("rejected"):
            return Rejected("Resend answered 422")
        self.accepted.append(mail)
        sent = Sent(f"resend-{len(self.accepted)}")
        self._answered[request.key] = self._clock(), request.body, sent
        lost = recipient.startswith("lost-answer") and len(self.accepted) == 1
        if lost or self.trouble == "loses answers":
            raise OutcomeUnknown("did not answer in time")
        return sent
