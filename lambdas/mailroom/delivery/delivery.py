"""One record's way to the provider: claim, look for evidence, prepare, submit, record."""

from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec import Struct

from mailroom.aws import queues
from mailroom.clock import Clock
from mailroom.content.payloads import Payloads
from mailroom.environment import Sender
from mailroom.errors import ClaimLost, Invalid
from mailroom.ledger.items import Claimed, InProgress, Unfounded
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Message, parse
from mailroom.message.outcome import (
    Evidence,
    Misconfigured,
    NotFound,
    Outcome,
    Rejected,
    Retry,
    Sent,
    Unknowable,
)
from mailroom.recipients.choices import Preferences, Suppressions, Unwanted
from mailroom.telemetry import logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

Wait = float | None
"""Seconds until the record should come back; None: it is finished with."""

_HELD = (
    "an earlier try may have reached the provider, and it is not sent again (on_unknown: hold, or it has "
    "expired, or its recipient is on the suppression list); ask the provider, and resend it by hand if it "
    "never arrived"
)


M = TypeVar("M", bound=Message)
R = TypeVar("R")


class Adapter(Protocol[M, R]):
    """A provider, as the worker sees it. It knows nothing of queues, tables or retries."""

    @property
    def provider(self) -> str:
        """Its name in the ledger."""

    @property
    def account(self) -> str | None:
        """Where the next submit goes, as far as that one's answer counts later: the provider, and our account
        there. None: nobody will be asked."""

    @property
    def contract(self) -> type[M]:
        """The messages that it takes."""

    def prepare(self, message: M) -> R:
        """All that comes before the provider is asked. Raises Invalid; any other error proves it unsent."""

    def submit(self, request: R) -> Outcome:
        """One call to the provider. An exception means that nobody knows whether it was accepted."""

    def look_up(self, message: M, since: int, known: Container[str]) -> Evidence:
        """What became of a try that began at `since` (epoch milliseconds) and was not heard of again.

        `known` holds provider ids that are other messages', or other attempts': none of them is this one.
        """


def backoff(receives: int, base: float, cap: float, random: Callable[[], float]) -> float:
    """Seconds to wait after the n-th receive: base, 2·base, 4·base … up to cap, of which 50 to 100 %.

    At least half, because the queue's maxReceiveCount is derived from the shortest sum of these waits.
    """
    whole = min(cap, base * 2.0 ** min(receives - 1, 32))
    return whole * (0.5 + random() / 2)


class Pace:
    """One worker's gap between submits, in seconds.

    The first submit of an invocation waits as well: the last one of another environment is not known here,
    and environments rotate. Time that passed since the last submit counts.
    """

    def __init__(self, gap: float, clock: Clock, sleep: Callable[[float], None]) -> None:
        self._gap = gap
        self._clock = clock
        self._sleep = sleep
        self._last = clock()

    def begin(self) -> None:
        """An invocation starts."""
        self._last = self._clock()

    def left(self) -> float:
        """Seconds until the next submit may start."""
        return max(0.0, self._last + self._gap - self._clock())

    def wait(self) -> None:
        """Sleep until then."""
        if self._gap:
            self._sleep(self.left())
        self._last = self._clock()


@dataclass(frozen=True)
class Tools:
    """What a delivery works with; time among it, so that tests need none."""

    ledger: Ledger
    payloads: Payloads
    sqs: "SQSClient"
    pace: Pace
    clock: Clock
    sleep: Callable[[float], None]
    jitter: Callable[[], float]
    suppressions: Suppressions | None = None
    preferences: Preferences | None = None


class Received(Struct, Generic[M], frozen=True):
    """One record of a queue: its item, the message that it was read as (or why it is none; None where it is
    no message by design), how often it was received, its group (None: it has none), the function's time
    left in milliseconds, and since when it waits (epoch seconds; None: nobody can tell)."""

    item: dict[str, Any]
    message: M | Invalid | None
    receives: int
    group: str | None
    remaining: Callable[[], int]
    since: float | None = None


class Delivery(Generic[M, R]):
    """Delivers one message at a time, each at most once an attempt. `tally` counts what came of them, and
    `waits` has how long those waited that were accepted, in seconds since they were put or were due.

    A channel with a way of its own is a subclass, and says where it differs: `item_of` (another form of
    body), `read`, `begin` (what is asked once for a batch), `retry_wait`, `_known` (ids that a look-up must
    not take), `_permitted`, `_may_submit`, `_accepted` and `_recovered` (what follows an acceptance, now or
    by an earlier worker), `_rejected`.
    """

    def __init__(self, settings: Sender, adapter: Adapter[M, R], tools: Tools) -> None:
        self._settings = settings
        self._adapter = adapter
        self._contracts = {settings.channel: adapter.contract}
        self._tools = tools
        self._ledger = tools.ledger
        self.tally: Counter[str] = Counter()
        self.waits: list[float] = []

    def item_of(self, body: dict[str, Any]) -> dict[str, Any]:
        """The item that a queue's body stands for. Raises Malformed."""
        return body

    def read(self, item: dict[str, Any]) -> M | Invalid | None:
        """The message that an item asks for, or what is wrong with it."""
        try:
            return parse(item, self._contracts)
        except Invalid as fault:
            return fault

    def begin(self, messages: Iterable[M]) -> None:
        """A batch begins with these messages."""

    def deliver(self, record: Received[M]) -> Wait:
        """Take one message as far as it goes."""
        match record.message:
            case Invalid() as fault:
                return self._refuse(record, fault)
            case None:
                raise TypeError("no message, and nobody who knows what else it is")
            case message:
                return self._deliver(message, record)

    def retry_wait(self, receives: int, least: float = 0) -> float:
        """Seconds until the next try after the n-th receive, growing and jittered, `least` where it can be.

        Never over the cap: the queue's retention is derived from it.
        """
        cap = self._settings.backoff_cap_seconds
        wait = backoff(receives, self._settings.backoff_seconds, cap, self._tools.jitter)
        return max(min(least, cap), wait)

    def _refuse(self, record: Received[M], fault: Invalid) -> Wait:
        if not self._ledger.refuse(record.item, "invalid", str(fault)):
            return self.retry_wait(record.receives)
        return self._over("Rejected", "refused", field=fault.field)

    def _deliver(self, message: M, record: Received[M]) -> Wait:
        if not self._in_time(record):
            return 0
        claim = self._ledger.claim(message, self._adapter.account)
        if isinstance(claim, InProgress):
            return claim.seconds + 1
        if isinstance(claim, Unfounded):
            logger.error("no attempt leads up to this one", attempt=message.attempt)
            self.tally["Malformed"] += 1
            return queues.AT_ONCE
        if not isinstance(claim, Claimed):
            return self._over("Duplicates", "already done", found=type(claim).__name__.lower())
        try:
            return self._attempt(claim, message, record)
        except ClaimLost:
            raise
        except Exception:  # noqa: BLE001 - logged, and the queue keeps the record
            # The claim stands, so that whoever gets the record after the lease looks for evidence first.
            logger.exception("outcome unknown; the claim stands until its lease ends")
            self.tally["Unknown"] += 1
            return self._settings.lease_seconds + 1

    def _attempt(self, claim: Claimed, message: M, record: Received[M]) -> Wait:
        unsure = False
        if claim.since is not None or claim.provider_id is not None:
            evidence = self._evidence(claim, message)
            if isinstance(evidence, Sent):
                return self._recovered(claim, message, evidence, record)
            unsure = not isinstance(evidence, NotFound)
        if unsure and self._settings.on_unknown == "hold":
            return self._hold(claim)
        if message.expired(self._tools.clock()):
            if unsure:
                return self._hold(claim)  # "not sent" might not be so
            self._ledger.fail(claim, "expired", f"expires_at: {message.expires_at} is past")
            return self._over("Expired", "expired")
        return self._send(claim, message, record, unsure)

    def _send(self, claim: Claimed, message: M, record: Received[M], unsure: bool) -> Wait:
        try:
            permitted = self._permitted(claim, self._whole(message))
            if isinstance(permitted, Unwanted):
                return self._hold(claim) if unsure else self._suppress(claim, permitted)
            request = self._adapter.prepare(permitted)
        except Invalid as fault:
            self._ledger.fail(claim, "invalid", str(fault))
            return self._over("Rejected", "rejected", field=fault.field)
        except ClaimLost:
            raise
        except Exception as trouble:  # noqa: BLE001 - logged, and the queue keeps the record
            logger.exception("not prepared; it goes back to the queue unsent")
            return self._unsent(claim, self.retry_wait(record.receives), "unprepared", type(trouble).__name__)
        if not self._may_submit(record):
            return self._unsent(claim, 0)
        self._tools.pace.wait()
        if unsure:
            self._over("Resent", "resending: the outcome of an earlier try is unknown", since=claim.since)
        return self._record(claim, message, self._adapter.submit(request), record)

    def _evidence(self, claim: Claimed, message: M) -> Evidence:
        """What became of an earlier worker's try."""
        # A provider's id in the ledger proves acceptance; asking, or a provider that cannot tell, would not.
        if claim.provider_id is not None:
            return Sent(claim.provider_id)
        since = claim.since or 0
        found = self._adapter.look_up(message, since, self._known(message, since))
        account = self._adapter.account
        if isinstance(found, NotFound) and account is not None and claim.accounts != {account}:
            # The settings or the credentials were others then: who has it was not asked.
            return Unknowable()
        return found

    def _known(self, message: M, since: int) -> Container[str]:  # noqa: ARG002 - for those that have any
        """Provider ids since then that are other messages' or other attempts'."""
        return ()

    def _hold(self, claim: Claimed) -> Wait:
        """An outcome that cannot be known stays so."""
        self._ledger.fail(claim, "outcome_unknown", _HELD)
        return self._over("Held", "held: the outcome of an earlier try is unknown")

    def _whole(self, message: M) -> M:
        """The message with its payload's attributes."""
        if message.payload_ref is None:
            return message
        return parse(self._tools.payloads.expand(message, message.payload_ref), self._contracts)

    def _permitted(self, claim: Claimed, message: M) -> M | Unwanted:  # noqa: ARG002 - for those that know of any
        """What of the message may be sent, or why nothing of it may. Asked once it is known that nothing was
        sent, or that nobody can know. Raises Invalid."""
        return message

    def _suppress(self, claim: Claimed, why: Unwanted) -> Wait:
        self._ledger.suppress(claim, why.code, why.sentence)
        return self._over("Suppressed", "suppressed", code=why.code)

    def _record(self, claim: Claimed, message: M, outcome: Outcome, record: Received[M]) -> Wait:
        match outcome:
            case Sent():
                return self._accepted(claim, message, outcome, record)
            case Rejected():
                return self._rejected(claim, message, outcome, record)
            case Retry(reason, after):
                self._over("Retried", "not sent; it goes back to the queue", reason=reason)
                return self._unsent(claim, self.retry_wait(record.receives, after), "retry", reason)
            case Misconfigured(reason):
                logger.error("not sent: a fault of configuration", reason=reason)
                self.tally["Misconfigured"] += 1
                return self._unsent(claim, self._settings.misconfigured_seconds, "misconfigured", reason)

    def _rejected(self, claim: Claimed, message: M, outcome: Rejected, record: Received[M]) -> Wait:  # noqa: ARG002 - for subclasses
        """The provider will never take it."""
        self._ledger.fail(claim, "rejected", outcome.reason)
        return self._over("Rejected", "rejected", reason=outcome.reason)

    def _accepted(self, claim: Claimed, message: M, sent: Sent, record: Received[M]) -> Wait:
        """The provider has just taken it."""
        # No log line where all goes well: the ledger says it, and a line would cost as much as all the rest.
        self.tally["Sent"] += 1
        try:
            self._ledger.complete(claim, self._adapter.provider, sent.provider_id, sent.facts, message.line)
        except Exception:
            logger.error("sent, but not recorded", provider_id=sent.provider_id)
            raise
        # Nothing may fail between the provider's yes and its record, so it is measured after both.
        self._waited(message, record)
        return None

    def _waited(self, message: M, record: Received[M]) -> None:
        """Note how long it took from the put, or from its time. A later attempt says nothing of that."""
        if record.since is not None and message.attempt == 1:
            self.waits.append(max(0.0, self._tools.clock() - max(record.since, message.due() or 0.0)))

    def _recovered(self, claim: Claimed, message: M, sent: Sent, record: Received[M]) -> Wait:  # noqa: ARG002 - for subclasses
        """An earlier worker's try turns out to have been accepted."""
        self._ledger.complete(claim, self._adapter.provider, sent.provider_id, sent.facts, message.line)
        return self._over("Recovered", "an earlier try was accepted", provider_id=sent.provider_id)

    def _unsent(self, claim: Claimed, wait: float, code: str = "", reason: str = "") -> Wait:
        """It goes back; `code` and `reason` say what kept it, where its time alone was not it."""
        self._ledger.release(claim, code, reason)
        return wait

    def _over(self, metric: str, line: str, **details: object) -> Wait:
        logger.info(line, extra=details)
        self.tally[metric] += 1
        return None

    def _may_submit(self, record: Received[M]) -> bool:
        """Asked right before a submit; a record that may not is released and comes back at once."""
        return self._in_time(record)

    def _in_time(self, record: Received[M]) -> bool:
        """Whether a submit that starts now, or when its turn comes, is over and recorded in time."""
        needed = self._tools.pace.left() + self._settings.submit_seconds + self._settings.record_seconds
        return record.remaining() / 1000 > needed
