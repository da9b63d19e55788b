"""One record's way to the provider: claim, look for evidence, prepare, submit, record."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Generic

from mailroom.adapter import Adapter, M, R
from mailroom.backoff import backoff
from mailroom.claim import Claimed, InProgress
from mailroom.clock import Clock
from mailroom.environment import Sender
from mailroom.errors import ClaimLost, Invalid
from mailroom.ledger import Ledger
from mailroom.message import parse
from mailroom.outcome import Misconfigured, NotFound, Outcome, Rejected, Retry, Sent
from mailroom.pace import Pace
from mailroom.payloads import Payloads
from mailroom.telemetry import logger

Wait = float | None
"""Seconds until the record should come back; None: it is finished with."""

_HELD = (
    "an earlier try may have reached the provider, and this channel does not resend (on_unknown: hold); "
    "ask the provider, and resend it by hand if it never arrived"
)


class Delivery(Generic[M, R]):
    """Delivers one message at a time, each at most once an attempt. `tally` counts what came of them."""

    def __init__(
        self,
        settings: Sender,
        adapter: Adapter[M, R],
        ledger: Ledger,
        payloads: Payloads,
        pace: Pace,
        clock: Clock,
        jitter: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._adapter = adapter
        self._contracts = {settings.channel: adapter.contract}
        self._ledger = ledger
        self._payloads = payloads
        self._pace = pace
        self._clock = clock
        self._jitter = jitter
        self.tally: Counter[str] = Counter()

    def deliver(self, item: dict[str, Any], receives: int, remaining: Callable[[], int]) -> Wait:
        """Take one message as far as it goes; `remaining` is the function's time left in milliseconds."""
        try:
            message = parse(item, self._contracts)
        except Invalid as fault:
            if not self._ledger.refuse(item, "invalid", str(fault)):
                return self.retry_wait(receives)
            return self._over("Rejected", "refused", field=fault.field)
        if not self._in_time(remaining):
            return 0
        claim = self._ledger.claim(message)
        if isinstance(claim, InProgress):
            return claim.seconds + 1
        if not isinstance(claim, Claimed):
            return self._over("Duplicates", "already done", found=type(claim).__name__.lower())
        try:
            return self._attempt(claim, message, receives, remaining)
        except ClaimLost:
            raise
        except Exception:  # noqa: BLE001 - logged, and the queue keeps the record
            # The claim stands, so that whoever gets the record after the lease looks for evidence first.
            logger.exception("outcome unknown; the claim stands until its lease ends")
            self.tally["Unknown"] += 1
            return self._settings.lease_seconds + 1

    def retry_wait(self, receives: int, least: float = 0) -> float:
        """Seconds until the next try after the n-th receive, growing and jittered, `least` where it can be.

        Never over the cap: the queue's retention is derived from it.
        """
        cap = self._settings.backoff_cap_seconds
        wait = backoff(receives, self._settings.backoff_seconds, cap, self._jitter)
        return max(min(least, cap), wait)

    def _attempt(self, claim: Claimed, message: M, receives: int, remaining: Callable[[], int]) -> Wait:
        in_doubt = claim.since is not None or claim.provider_id is not None
        if in_doubt and self._settled(claim, message, claim.since or 0):
            return None
        if message.expired(self._clock()):
            self._ledger.fail(claim, "expired", f"expires_at: {message.expires_at} is past")
            return self._over("Expired", "expired")
        try:
            request = self._adapter.prepare(self._whole(message))
        except Invalid as fault:
            self._ledger.fail(claim, "invalid", str(fault))
            return self._over("Rejected", "rejected", field=fault.field)
        except Exception:  # noqa: BLE001 - logged, and the queue keeps the record
            logger.exception("not prepared; it goes back to the queue unsent")
            return self._unsent(claim, self.retry_wait(receives))
        if not self._in_time(remaining):
            return self._unsent(claim, 0)
        self._pace.wait()
        return self._record(claim, self._adapter.submit(request), receives)

    def _settled(self, claim: Claimed, message: M, since: int) -> bool:
        """Whether an earlier worker's unknown outcome is now known or must stay as it is."""
        # A provider's id in the ledger proves acceptance; asking, or a provider that cannot tell, would not.
        known = claim.provider_id
        evidence = self._adapter.look_up(message, since) if known is None else Sent(known)
        if isinstance(evidence, Sent):
            self._ledger.complete(claim, self._adapter.provider, evidence.provider_id)
            self._over("Recovered", "an earlier try was accepted", provider_id=evidence.provider_id)
            return True
        if isinstance(evidence, NotFound):
            return False
        if self._settings.on_unknown == "hold":
            self._ledger.fail(claim, "outcome_unknown", _HELD)
            self._over("Held", "held: the outcome of an earlier try is unknown")
            return True
        self._over("Resent", "resending: the outcome of an earlier try is unknown", since=since)
        return False

    def _whole(self, message: M) -> M:
        """The message with its payload's attributes."""
        if message.payload_ref is None:
            return message
        return parse(self._payloads.expand(message, message.payload_ref), self._contracts)

    def _record(self, claim: Claimed, outcome: Outcome, receives: int) -> Wait:
        match outcome:
            case Sent(provider_id):
                return self._complete(claim, provider_id)
            case Rejected(reason):
                self._ledger.fail(claim, "rejected", reason)
                return self._over("Rejected", "rejected", reason=reason)
            case Retry(reason, after):
                self._over("Retried", "not sent; it goes back to the queue", reason=reason)
                return self._unsent(claim, self.retry_wait(receives, after))
            case Misconfigured(reason):
                logger.error("not sent: a fault of configuration", reason=reason)
                self.tally["Misconfigured"] += 1
                return self._unsent(claim, self._settings.misconfigured_seconds)

    def _complete(self, claim: Claimed, provider_id: str) -> Wait:
        # No log line where all goes well: the ledger says it, and a line would cost as much as all the rest.
        self.tally["Sent"] += 1
        try:
            self._ledger.complete(claim, self._adapter.provider, provider_id)
        except Exception:
            logger.error("sent, but not recorded", extra={"provider_id": provider_id})
            raise
        return None

    def _unsent(self, claim: Claimed, wait: float) -> Wait:
        self._ledger.release(claim)
        return wait

    def _over(self, metric: str, line: str, **details: object) -> Wait:
        logger.info(line, extra=details)
        self.tally[metric] += 1
        return None

    def _in_time(self, remaining: Callable[[], int]) -> bool:
        """Whether a submit that starts now, or when its turn comes, is over and recorded in time."""
        needed = self._pace.left() + self._settings.submit_seconds + self._settings.record_seconds
        return remaining() / 1000 > needed
