"""What becomes of a message: what a provider's answer to a submit proves, what its events say later, and the
statuses that follow, which move one way only: forward.

An adapter that raises instead of answering says that the outcome is unknown.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

from msgspec import Struct

from mailroom.message.message import Key

Facts = dict[str, str | int]
"""Attributes of a ledger item, by their names."""


class Sent(Struct, frozen=True):
    """The provider accepted the message and calls it `provider_id`; `facts` are kept with it."""

    provider_id: str
    facts: Facts = {}


class Retry(Struct, frozen=True):
    """Proved not sent, and worth another try; `after`: the least wait, in seconds."""

    reason: str
    after: float = 0


class Rejected(Struct, frozen=True):
    """Permanent and the message's own fault: it ends as failed. `gone`: its recipient is no more, and no
    later message will reach it either. `opted_out`: its recipient has told the provider to stop; it ends as
    suppressed. Both enter the suppression list."""

    reason: str
    gone: bool = False
    opted_out: bool = False


class Misconfigured(Struct, frozen=True):
    """Proved not sent, by a fault of ours (sender, credentials, account): an alarm, not a failed message."""

    reason: str


class DayUsedUp(Struct, frozen=True):
    """Proved not sent: the provider takes no more today. It is nobody's fault, and no try is lost by it."""

    reason: str


class Conflict(Struct, frozen=True):
    """The provider has got another request under this one's key, and did nothing now. Whether that other one
    sent the message, nobody can tell: another key might send it twice."""

    reason: str


class NotFound(Struct, frozen=True):
    """A look-up's answer: the provider never got it, so submitting it is safe."""


class Unknowable(Struct, frozen=True):
    """A look-up's answer: this provider cannot tell; the channel's `on_unknown` decides."""


class Repeatable(Struct, frozen=True):
    """A look-up's answer: this provider knows a request by its key, and answers the identical one as it did
    the first, sending nothing again, for a time that ends at `until` (epoch seconds). `prepare` makes that
    request of the message; it raises what an adapter's own `prepare` does."""

    until: float
    prepare: Callable[[Any], Any]


Refusal = Retry | Misconfigured | Rejected | DayUsedUp
"""Proved not sent."""
Outcome = Sent | Refusal | Conflict
Evidence = Sent | NotFound | Repeatable | Unknowable
ANY_ACCOUNT = ""
"""Account of a provider whose evidence does not depend on the account that looks for it."""


class NotReady(Exception):
    """Raised before a submit: the message cannot go out now, and `outcome` says why."""

    def __init__(self, outcome: Refusal) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


Status = Literal[
    "scheduled",
    "sending",
    "retrying",
    "failed",
    "suppressed",
    "cancelled",
    "sent",
    "undelivered",
    "delivered",
    "bounced",
    "complained",
]
"""In the order of what is known: a provider's event may only replace a status that stands before its own,
so any order and any number of events end the same. A bounce or a complaint may follow a delivery. What was
given up stands before what a provider proves."""

_ORDER: tuple[Status, ...] = get_args(Status)
SILENT: tuple[Status, ...] = ("sending", "scheduled")
"""Statuses that are no outcome: a message passes through them, after a crash even twice."""
FAILED: tuple[Status, ...] = ("failed", "undelivered", "bounced", "complained")
"""Statuses that a producer did not wish for. `suppressed` is none: nothing went wrong, nothing was sent."""
CODES: dict[str, tuple[str, ...]] = {
    "undelivered": ("error_code", "bounce_type"),
    "bounced": ("bounce_type",),
    "complained": ("complaint_type",),
}
"""Where the ledger keeps why, for the statuses that a provider reports."""
DETAIL_TYPE = "Message Outcome"
"""The `detail-type` of the events on a bus that tell of an outcome."""


def before(status: Status) -> tuple[Status, ...]:
    """The statuses that `status` may replace."""
    return _ORDER[: rank(status)]


def rank(status: Status) -> int:
    """A status's place in the one order: a higher one is known better."""
    return _ORDER.index(status)


class Event(Struct, frozen=True, kw_only=True):
    """All events prove that the provider has accepted the attempt.

    `kind` is the provider's own word, for logs and metrics. `status` is None where it tells a fact alone (a
    delay, an open). `recipients` are canonical, as the suppression list has them; () is all of the message's,
    and `several` says that there are more than one. `suppress` marks those recipients. `found_by_number`: a
    look-up asks this provider by number, and must not take this message for another. `at` is the provider's
    time in epoch milliseconds, `detail` a sentence of at most 300 characters. `facts` are attributes of the
    ledger item: times in epoch milliseconds (`deliveredAt`), the rest as the provider said it.
    """

    key: Key
    attempt: int
    provider: str
    provider_id: str | None
    kind: str
    status: Status | None
    facts: Facts
    recipients: tuple[str, ...]
    several: bool = False
    found_by_number: bool = False
    suppress: Literal["bounce", "complaint", "stop"] | None = None
    at: int
    detail: str = ""
