"""Outcomes of a message: the proof in a provider's response to a submit, the provider's later events, and the
statuses that follow from them. A status is replaced only by a later status.

If an adapter's submit raises an exception other than NotSent, the outcome is unknown.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

from msgspec import Struct

from mailroom.errors import NotSent
from mailroom.message.message import Key

Facts = dict[str, str | int]
"""Attributes of a ledger item by name."""


class Sent(Struct, frozen=True):
    """Proof that the provider has accepted the message."""

    provider_id: str
    """Id of the message at the provider."""
    facts: Facts = {}
    """Further attributes for the ledger item."""


class Retry(Struct, frozen=True):
    """Proof that the message was not sent, because of an error that may be temporary. The message is
    retried."""

    reason: str
    """Reason in a sentence for people."""
    after: float = 0
    """Minimum wait before the next try, in seconds."""


class Rejected(Struct, frozen=True):
    """Proof that the message was not sent, because the message itself is permanently invalid. The message
    ends as failed."""

    reason: str
    """Reason in a sentence for people."""
    gone: bool = False
    """True for a recipient that no longer exists. Later messages would fail too, so the recipient is put on
    the suppression list."""
    opted_out: bool = False
    """True for a recipient who has opted out at the provider. The message ends as suppressed, and the
    recipient is put on the suppression list."""
    undecided: bool = False
    """True if the provider's words also fit an invalid configuration. The sender then decides by evidence:
    see `UndecidedRefusals`."""


class Misconfigured(Struct, frozen=True):
    """Proof that the message was not sent, because the stage's configuration (sender, credentials, account)
    is invalid. The message is retried, and an alarm is raised."""

    reason: str
    """Reason in a sentence for people."""


class DayUsedUp(Struct, frozen=True):
    """Proof that the message was not sent, because the account's daily quota is used up. The message waits
    until the quota has capacity again; this is not counted as a try."""

    reason: str
    """Reason in a sentence for people."""


class Conflict(Struct, frozen=True):
    """Proof that the provider ignored the request, because an earlier, different request had the same
    idempotency key. The earlier request may have sent the message, so a new key might send it twice."""

    reason: str
    """Reason in a sentence for people."""


class NotFound(Struct, frozen=True):
    """Result of a look-up: the provider never received the message, so a submit is safe."""


class Unknowable(Struct, frozen=True):
    """Result of a look-up: the provider cannot prove whether it received an earlier try. The channel's
    setting `on_unknown` decides whether the message is sent again."""


class Repeatable(Struct, frozen=True):
    """Result of a look-up at a provider that identifies requests by idempotency key: an identical request
    gets the first response again, and sends no second message."""

    until: float
    """Time until which the provider remembers the key, in epoch seconds."""
    prepare: Callable[[Any], Any]
    """Function that builds the identical request from the message. It raises the same exceptions as
    `Adapter.prepare`."""


Refusal = Retry | Misconfigured | Rejected | DayUsedUp
"""Proof that a message was not sent."""
Fault = Literal["message", "destination", "day", "account", "throttled", "undecided"]
"""Cause of a refusal or of a failed delivery: the message itself; the recipient, the recipient's country or
carrier; a limit for a day; the account, or another setting of the stage; a rate. `undecided`: the provider's
words fit the message or the destination, but also the account."""

Effect = Literal["", "gone", "opted_out", "again"]
"""Consequence for the recipient: the field of `Rejected` that is true. `again`: another attempt may succeed
after a failed delivery."""


class Row(Struct, frozen=True):
    """Row of a provider's table of refusals: one documented code, or one documented text."""

    code: str
    """Code of a response or of an event. If the provider has one code for several causes, the beginning of
    the error's text."""
    fault: Fault
    words: str
    """Explanation of the code in the provider's words."""
    source: str
    """URL of the provider's document, or name and version of its model."""
    read: str
    """Date on which the source was read."""
    effect: Effect = ""

    @property
    def rings(self) -> bool:
        """Whether an event with this row sets off an alarm: other messages will fail too, and are not sent
        again."""
        return self.fault in ("account", "day")

    def refusal(self, reason: str, after: float = 0) -> Refusal:
        """Return the outcome of a submit that was refused with this row's code, for `reason`. `after` is the
        minimum wait in seconds that the provider requests."""
        match self.fault:
            case "day":
                return DayUsedUp(reason)
            case "throttled":
                return Retry(reason, after)
            case "account":
                return Misconfigured(reason)
        return Rejected(reason, self.effect == "gone", self.effect == "opted_out", self.fault == "undecided")


def table(
    source: str, read: str, *rows: tuple[str, Fault, str] | tuple[str, Fault, str, Effect]
) -> dict[str, Row]:
    """Return rows that have the same source and date, by code. `{code}` in `source` is replaced by the row's
    code."""
    return {row[0]: Row(*row[:3], source.replace("{code}", row[0]), read, *row[3:]) for row in rows}


Outcome = Sent | Refusal | Conflict
Evidence = Sent | NotFound | Repeatable | Unknowable
ANY_ACCOUNT = ""
"""Account in a claim for a provider whose look-up has the same result for every account."""


class NotReady(NotSent):
    """Error before a submit: the message cannot be sent now, for the reason in `outcome`."""

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
"""Statuses, from the least to the most certain. A provider's event may only replace a status that precedes
the event's status, so the last status does not depend on the order and number of events. A bounce or a
complaint may follow a delivery. The statuses `failed`, `suppressed` and `cancelled` precede the statuses that
a provider proves."""

_ORDER: tuple[Status, ...] = get_args(Status)
SILENT: tuple[Status, ...] = ("sending", "scheduled")
"""Statuses of a message without an outcome, about which no callback is sent. After a crash, a message may get
one of these statuses twice in a row."""
ACCEPTED: tuple[Status, ...] = ("sent", "undelivered", "delivered", "bounced", "complained")
"""Statuses of a message that a provider has accepted."""
FAILED: tuple[Status, ...] = ("failed", "undelivered", "bounced", "complained")
"""Statuses of a failure. `suppressed` is not a failure: the message was withheld on purpose."""
CODES: dict[str, tuple[str, ...]] = {
    "undelivered": ("error_code", "bounce_type"),
    "bounced": ("bounce_type",),
    "complained": ("complaint_type",),
}
"""Ledger attributes that hold the reason of a failure, by the status that a provider reports."""
DETAIL_TYPE = "Message Outcome"
"""Value of `detail-type` in the events that report outcomes on a bus."""


def before(status: Status) -> tuple[Status, ...]:
    """Return the statuses that `status` may replace."""
    return _ORDER[: rank(status)]


def rank(status: Status) -> int:
    """Return the position of a status in the order of certainty, counted from 0."""
    return _ORDER.index(status)


class Event(Struct, frozen=True, kw_only=True):
    """A provider's report about an attempt. Every event proves that the provider has accepted the attempt."""

    key: Key
    """Key of the message."""
    attempt: int
    """Number of the attempt, counted from 1."""
    provider: str
    """Name of the provider."""
    provider_id: str | None
    """Id of the message at the provider, if the event has one."""
    kind: str
    """Kind of the event in the provider's words, for logs and metrics."""
    status: Status | None
    """Status that the event proves, or None for an event that only adds facts (a delay, an open)."""
    facts: Facts
    """Attributes for the ledger item: times in epoch milliseconds (`deliveredAt`), other values in the
    provider's form."""
    recipients: tuple[str, ...]
    """Recipients that the event is about, in the canonical form of the suppression list. An empty tuple means
    all recipients of the message."""
    several: bool = False
    """True for an event about a message to more than one recipient."""
    found_by_number: bool = False
    """True for a provider whose look-ups search by telephone number. The ledger then stores `provider_id`, so
    that a look-up for a different message cannot mistake this message for that one."""
    suppress: Literal["bounce", "complaint", "stop"] | None = None
    """Reason to put `recipients` on the suppression list, if the event is one."""
    at: int
    """Time at the provider, in epoch milliseconds."""
    detail: str = ""
    """Sentence for people, of at most 300 characters."""
    misconfigured: bool = False
    """True for a failed delivery for which the account or another setting of the stage is at fault, so that
    other messages will fail too. It sets off an alarm."""
