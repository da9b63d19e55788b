"""The simulated telephone network that the fax providers share; `fax_numbers.py` says which number does what.

A line is one line: a fax to a number where another one is still under way is busy, as in life, and the log
keeps which other ones it met.
"""

import math
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from local.providers import fax_numbers
from local.providers.fax_media import is_pdf
from local.providers.fax_record import Fax, Order, Refused
from local.providers.fax_wire import json_reply
from local.providers.http import Reply, Request
from local.providers.inbox import Accepted, InboxStore


class FaxLine:
    """All faxes of all providers, in the order of acceptance; safe for many threads."""

    def __init__(
        self,
        inbox: InboxStore,
        clock: Callable[[], float] = time.time,
        *,
        delivered_seconds: float = 0.3,
        busy_seconds: float = 0.1,
        slow_seconds: float = 5.0,
        fetch: Callable[[str], bool | None] = is_pdf,
    ) -> None:
        """`busy_seconds` is also what no answer and failures take; `fetch` tells whether a PDF lies there."""
        self._inbox = inbox
        self.clock = clock
        self._seconds = {
            "delivered": delivered_seconds,
            "lost": delivered_seconds,
            "slow": slow_seconds,
            "stuck": math.inf,
        }
        self._short = busy_seconds
        self._fetch = fetch
        self._faxes: dict[str, Fax] = {}
        self._refused: list[dict[str, Any]] = []
        self._submits: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def submit(self, order: Order) -> Fax:
        """Take a fax, or raise Refused. Where its course is `lost` the caller answers nothing."""
        nth = self._counted(order)
        media_ok = self._fetch(order.media_url)
        with self._lock:
            fax = self._accepted(order, nth, media_ok)
            self._faxes[fax.id] = fax
        name = order.media_url.partition("?")[0].rsplit("/", 1)[-1]
        content = {"subject": name, "media_ok": media_ok, **vars(order)}
        self._inbox.add(Accepted("fax", order.to, fax.id, content))
        return fax

    def fax(self, provider: str, fax_id: str) -> Fax | None:
        """One of that provider's."""
        fax = self._faxes.get(fax_id)
        return fax if fax is not None and fax.order.provider == provider else None

    def faxes(self, provider: str) -> list[Fax]:
        """All of that provider's, newest first, as their lists are."""
        with self._lock:
            return [fax for fax in reversed(self._faxes.values()) if fax.order.provider == provider]

    def cancel(self, fax: Fax, while_in: set[str]) -> bool:
        """Stop it where it stands in one of these statuses; tells whether it was stopped."""
        with self._lock:
            now = self.clock()
            if fax.status(now) not in while_in:
                return False
            fax.ends, fax.canceled = now, True
            return True

    def log(self) -> list[dict[str, Any]]:
        """Every accepted fax. It was under way from `created` to `ended` (None: still is); `overlaps` names
        those that it met on its line: a gateway that sends one at a time leaves all of them empty."""
        with self._lock:
            now = self.clock()
            return [fax.as_json(now) for fax in self._faxes.values()]

    def refused(self) -> list[dict[str, Any]]:
        """Every submit that was not accepted."""
        with self._lock:
            return list(self._refused)

    def clear(self) -> None:
        """Forget all of it, the counts included."""
        with self._lock:
            self._faxes.clear()
            self._refused.clear()
            self._submits.clear()

    def _counted(self, order: Order) -> int:
        """The how-manieth submit of this document to this number it is."""
        with self._lock:
            key = order.to, fax_numbers.document(order.media_url)
            self._submits[key] += 1
            nth = self._submits[key]
            why = fax_numbers.refusal(order.to, nth)
            if why is None:
                return nth
            self._refused.append({**vars(order), "why": why, "at": self.clock(), "attempt": nth})
            raise Refused(why)

    def _accepted(self, order: Order, nth: int, media_ok: bool | None) -> Fax:
        now = self.clock()
        met = [fax.id for fax in self._faxes.values() if fax.order.to == order.to and now < fax.ends]
        course = fax_numbers.course(order.to, nth)
        if met:
            course = "busy"
        elif media_ok is False:
            course = "unreachable"
        ends = now + self._seconds.get(course, self._short)
        return Fax(str(uuid.uuid4()), order, course, now, ends, nth, met, media_ok)


class FaxPages:
    """GET /faxes, GET /faxes/refused, DELETE /faxes."""

    prefix = "/faxes"

    def __init__(self, line: FaxLine) -> None:
        self._line = line

    def handle(self, request: Request) -> Reply:
        match request.method, request.path.partition("?")[0].rstrip("/"):
            case "GET", "/faxes":
                return json_reply(HTTPStatus.OK, self._line.log())
            case "GET", "/faxes/refused":
                return json_reply(HTTPStatus.OK, self._line.refused())
            case "DELETE", "/faxes":
                self._line.clear()
                return Reply(HTTPStatus.NO_CONTENT, b"")
        return json_reply(
            HTTPStatus.NOT_FOUND, {"message": "Try GET /faxes, GET /faxes/refused, DELETE /faxes."}
        )
