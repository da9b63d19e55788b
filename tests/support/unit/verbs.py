"""Verbs of a claim's holder, and a ledger whose calls are recorded."""

from collections.abc import Callable

from mailroom.ledger.claims import Claimed
from mailroom.ledger.ledger import Ledger
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import LEASE, LEDGER, TTL, Aws, FakeClock

Verb = Callable[[Ledger, Claimed], None]

OWN_VERBS: dict[str, Verb] = {
    "checkpoint": lambda ledger, claim: ledger.checkpoint(claim, "ses", "p-9"),
    "complete": lambda ledger, claim: ledger.complete(claim, "ses", "p-9"),
    "fail": lambda ledger, claim: ledger.fail(claim, "rejected", "no"),
    "doubt": lambda ledger, claim: ledger.doubt(claim, "SES: ReadTimeoutError"),
    "release": lambda ledger, claim: ledger.release(claim),
    "hand_back": lambda ledger, claim: ledger.hand_back(claim),
    "retry_later": lambda ledger, claim: ledger.retry_later(claim, "busy", "no"),
}


def watched(aws: Aws, clock: FakeClock) -> tuple[Ledger, Meddler]:
    """Make a ledger, and the client that records its calls."""
    client = Meddler(aws.dynamodb)
    return Ledger(client, LEDGER, lease=LEASE, ttl=TTL, clock=clock), client  # type: ignore[arg-type]
