"""Simulated telephone network that the fax providers share, and the behaviour of its numbers.

The line of a number takes one fax at a time, as in reality: a fax is busy if another fax to its number is in
transmission. The page /faxes lists the ids of these other faxes as `overlaps`.

The last two digits of a number that ends in 555 01xx determine the outcome. Faxes to other numbers are
delivered. `First` and `twice` count the submits of one document (its URL without a signature) to one number.

| 555 01… | what happens                                                                             |
|---------|------------------------------------------------------------------------------------------|
| 10      | busy                                                                                     |
| 11      | no answer                                                                                |
| 12      | busy twice, then delivered                                                               |
| 13      | delivered, slowly                                                                        |
| 14      | accepted and delivered, but the first answer is lost: the connection breaks              |
| 15      | refused as an invalid number (SignalWire 400, Telnyx 422)                                |
| 16      | throttled first (429), then delivered                                                    |
| 17      | a server error first (500, nothing accepted), then delivered                             |
| 18      | accepted, then failed by the line                                                        |
| 19      | accepted, then failed because the PDF cannot be fetched                                  |
| 20      | accepted, and stays queued until it is canceled                                          |
| 21      | accepted, then failed: an unallocated number                                             |
| 22      | the account is refused (403)                                                             |
| 23      | failed by the line once, then delivered                                                  |
| 24      | accepted, then canceled by the provider once, as if its Ttl were over; then delivered    |
| others  | delivered                                                                                |

A number +1 555 00x xxxx is refused with the provider's error code xxxxx. At Telnyx, a fax to +1 555 009 xxxx
fails for the failure reason number xxxx of Telnyx's table.
"""

import math
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

from mailroom_local.aws import open_url
from mailroom_local.providers.http import NoAnswer, Occurrences, Pages, SubmitRefused, number_ending
from mailroom_local.providers.inbox import Accepted, InboxStore
from mailroom_local.providers.rows import number_code

Refusal = Literal["invalid", "throttled", "error", "forbidden"]
Course = Literal[
    "delivered",
    "busy",
    "no-answer",
    "slow",
    "lost",
    "failed",
    "unreachable",
    "stuck",
    "unallocated",
    "canceled",
]

REFUSED: dict[str, Refusal] = {"15": "invalid", "22": "forbidden"}
REFUSED_FIRST: dict[str, Refusal] = {"16": "throttled", "17": "error"}
COURSES: dict[str, Course] = {
    "10": "busy",
    "11": "no-answer",
    "13": "slow",
    "18": "failed",
    "19": "unreachable",
    "20": "stuck",
    "21": "unallocated",
}
FOR_SO_MANY: dict[str, tuple[int, Course]] = {
    "12": (2, "busy"),
    "14": (1, "lost"),
    "23": (1, "failed"),
    "24": (1, "canceled"),
}

_SIGNATURE = {"awsaccesskeyid", "signature", "expires"}
_ENDINGS = {"slow": "delivered", "lost": "delivered", "unreachable": "failed", "unallocated": "failed"}
TIMEOUT_SECONDS = 5.0


def refusal_of(number: str, nth: int) -> Refusal | None:
    """Return why the provider refuses the n-th submit, or None if it accepts the submit."""
    ending = number_ending(number)
    return REFUSED.get(ending) or (REFUSED_FIRST.get(ending) if nth == 1 else None)


def course_of(number: str, nth: int) -> Course:
    """Return what happens to the n-th submit after the provider has accepted it."""
    ending = number_ending(number)
    if number_code(number).startswith("9"):
        return "failed"
    times, at_first = FOR_SO_MANY.get(ending, (0, "delivered"))
    return at_first if nth <= times else COURSES.get(ending, "delivered")


def document(url: str) -> str:
    """Return a URL without its signature, which differs in each attempt."""
    parts = urlsplit(url)
    query = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if name.lower() not in _SIGNATURE and not name.lower().startswith("x-amz-")
    ]
    return parts._replace(query=urlencode(query), fragment="").geturl()


@dataclass(frozen=True)
class FaxOrder:
    """Request to send a fax, in the same form for all providers."""

    provider: str
    to: str
    sender: str
    media_url: str
    quality: str = ""
    reference: str = ""
    ttl_minutes: int | None = None
    store_media: bool = True
    account: str = ""


@dataclass
class SimulatedFax:
    """An accepted fax. Times are in epoch seconds. A stuck fax has an infinite time of dialling and of its
    end."""

    id: str
    order: FaxOrder
    course: Course
    created: float
    ends: float
    attempt: int
    overlaps: list[str]
    media_ok: bool | None
    dialled: float = field(init=False)

    def __post_init__(self) -> None:
        self.dialled = self.created + 0.3 * (self.ends - self.created)

    def status(self, moment: float) -> str:
        """Return the status at `moment`, in SignalWire's words."""
        if moment >= self.ends:
            return _ENDINGS.get(self.course, self.course)
        if moment >= self.dialled:
            return "sending"
        return "processing" if moment >= self.created + 0.1 * (self.ends - self.created) else "queued"

    def as_json(self, moment: float) -> dict[str, Any]:
        order = {name: value for name, value in vars(self.order).items() if name not in ("sender", "account")}
        return {
            "id": self.id,
            **order,
            "from": self.order.sender,
            "course": self.course,
            "status": self.status(moment),
            "created": self.created,
            "started": self.dialled if min(moment, self.ends) >= self.dialled else None,
            "ended": self.ends if moment >= self.ends else None,
            "attempt": self.attempt,
            "overlaps": self.overlaps,
            "media_ok": self.media_ok,
        }


def is_pdf(url: str) -> bool | None:
    """Return whether the URL returns a PDF, or None for a host other than this machine, to which the
    simulators send no requests."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname != "127.0.0.1":
        return None
    try:
        with open_url(url, TIMEOUT_SECONDS) as answer:
            return bool(answer.read(5) == b"%PDF-")
    except (HTTPException, OSError):
        return False


class FaxLine:
    """Faxes of all providers, in the order of acceptance. Thread-safe."""

    def __init__(
        self,
        inbox: InboxStore,
        clock: Callable[[], float] = time.time,
        *,
        delivered_seconds: float = 0.3,
        busy_seconds: float = 0.1,
        slow_seconds: float = 5.0,
    ) -> None:
        """Set the durations of faxes. Faxes without an answer and failed faxes last for `busy_seconds`
        too."""
        self._inbox = inbox
        self.clock = clock
        seconds = dict.fromkeys(("delivered", "lost"), delivered_seconds)
        self._seconds_of = (seconds | {"slow": slow_seconds, "stuck": math.inf}).get
        self._short = busy_seconds
        self._faxes: dict[str, SimulatedFax] = {}
        self._submits = Occurrences()
        self._lock = threading.Lock()

    def submit(self, order: FaxOrder) -> SimulatedFax:
        """Accept a fax. Raises SubmitRefused if its number is refused, and NoAnswer after accepting a fax
        whose course is `lost`."""
        nth = self._submits.nth((order.to, document(order.media_url)))
        reason = refusal_of(order.to, nth)
        if reason is not None:
            raise SubmitRefused(reason)
        media_ok = is_pdf(order.media_url)
        with self._lock:
            fax = self._accepted(order, nth, media_ok)
            self._faxes[fax.id] = fax
        name = order.media_url.partition("?")[0].rsplit("/", 1)[-1]
        content = {"subject": name, "media_ok": media_ok, **vars(order)}
        self._inbox.add(Accepted("fax", order.to, fax.id, content))
        if fax.course == "lost":
            raise NoAnswer
        return fax

    def fax(self, provider: str, fax_id: str) -> SimulatedFax | None:
        fax = self._faxes.get(fax_id)
        return fax if fax is not None and fax.order.provider == provider else None

    def faxes(self, provider: str) -> list[SimulatedFax]:
        """Return the faxes of a provider, newest first like the lists of its API."""
        with self._lock:
            return [fax for fax in reversed(self._faxes.values()) if fax.order.provider == provider]

    def cancel(self, fax: SimulatedFax, while_in: set[str]) -> bool:
        """Cancel a fax if its status is in `while_in`. Return whether it was cancelled."""
        with self._lock:
            moment = self.clock()
            if fax.status(moment) not in while_in:
                return False
            fax.ends, fax.course = moment, "canceled"
            return True

    def log(self) -> list[dict[str, Any]]:
        """Return all accepted faxes as JSON. A fax is in transmission from `created` to `ended`, which is
        None before its end. `overlaps` has the ids of other faxes that were on the line at the same time; it
        is empty if a gateway sends one fax at a time."""
        with self._lock:
            moment = self.clock()
            return [fax.as_json(moment) for fax in self._faxes.values()]

    def pages(self) -> Pages:
        return Pages("/faxes", {"GET /faxes": lambda _: self.log()})

    def _accepted(self, order: FaxOrder, nth: int, media_ok: bool | None) -> SimulatedFax:
        moment = self.clock()
        met = [fax.id for fax in self._faxes.values() if fax.order.to == order.to and moment < fax.ends]
        course = course_of(order.to, nth)
        if met:
            course = "busy"
        elif media_ok is False:
            course = "unreachable"
        ends = moment + self._seconds_of(course, self._short)
        return SimulatedFax(str(uuid.uuid4()), order, course, moment, ends, nth, met, media_ok)
