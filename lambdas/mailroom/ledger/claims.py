"""Results of a claim: the conditional write with which every delivery of a message begins."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, structs

from mailroom.message.message import Key
from mailroom.message.outcome import Evidence, NotFound, Repeatable, Sent


class Try(Struct, frozen=True, order=True):
    """A submit that may have been made, and whose outcome is unknown."""

    began: int
    """Time of the claim in epoch milliseconds."""
    account: str
    """Provider and account to which the message was going to be submitted, or ANY_ACCOUNT."""

    @property
    def text(self) -> str:
        """The try as text, in the form of the ledger attribute `unsettled_tries`."""
        return f"{self.began} {self.account}"


def tries_in(texts: Iterable[str]) -> tuple[Try, ...]:
    """Parse the texts of `unsettled_tries`, and return the tries, oldest first."""
    parts = (text.split(" ", 1) for text in texts)
    return tuple(sorted(Try(int(began), account) for began, account in parts))


class Checkpoint(Struct, frozen=True):
    """Proof that a provider has accepted an attempt which has not ended yet, such as a fax in
    transmission."""

    provider_id: str
    provider: str
    submitted_at: int
    """Time of the submit in epoch milliseconds."""


class Claimed(Struct, frozen=True):
    """Successful claim: until the lease ends, only this worker may submit the message."""

    key: Key
    token: str
    """Text that identifies this claim: each later write requires that the ledger item still has this
    token."""
    account: str | None = None
    """Account to which the message may be submitted; None if the message may not be submitted."""
    unsettled: tuple[Try, ...] = ()
    """Earlier tries of unknown outcome, oldest first; empty if the attempt was certainly not submitted."""
    checkpoint: Checkpoint | None = None
    """Acceptance of this attempt by the provider: the worker waits for the result, and never submits this
    attempt again."""
    redirected_to: str | None = None
    """Recipient to whom the stage's settings redirect the message, instead of its recipients."""
    redriven: bool = False
    """Whether an operator has put the message back from a dead-letter queue."""
    trouble: dict[str, str] = {}
    """Reason why the latest try did not send the message, or why its outcome is unknown: {code, message}."""
    settled: bool = False
    """True if there are earlier tries, and all tries together have certainly sent the message at most once.
    `Ledger.complete` then removes the tries from the ledger item."""
    uncounted: int = 0
    """Number of ended attempts of a fax that do not count towards the maximum."""

    def after(self, evidence: Evidence) -> "Claimed":
        """Return the claim after evidence about its earlier tries. The tries are removed if the evidence
        proves that none of them reached the provider."""
        if isinstance(evidence, NotFound):
            return structs.replace(self, unsettled=(), settled=True) if self.unsettled else self
        # A provider accepts an identical request with the same idempotency key only once. So after a
        # Repeatable, all tries together send one message. Look-ups and checkpoints prove nothing about tries
        # at other accounts. So after a Sent, this is certain only if all tries were made at one account.
        one_send = isinstance(evidence, Repeatable) or (
            isinstance(evidence, Sent) and len(self.accounts) == 1
        )
        return structs.replace(self, settled=one_send)

    @property
    def accounts(self) -> frozenset[str]:
        """Accounts to which earlier tries of unknown outcome may have been submitted."""
        return frozenset(earlier.account for earlier in self.unsettled)


class Completed(Struct, frozen=True):
    """Refusal of a claim: the message has already ended, so the queue record is dropped."""


class Superseded(Struct, frozen=True):
    """Refusal of a claim: a later attempt exists, so the queue record is a stale copy and is dropped."""


class InProgress(Struct, frozen=True):
    """Refusal of a claim: another worker has claimed the message, and that worker's lease has not ended."""

    seconds: float
    """Seconds until the other worker's lease ends."""


class OutOfSequence(Struct, frozen=True):
    """Refusal of a claim: the attempt before this one has not ended. Either the attempt number in the record
    is wrong, or the message's ledger item is missing."""


Claim = Claimed | Completed | Superseded | InProgress | OutOfSequence


def why_not_claimed(item: Mapping[str, Any], attempt: int, now_ms: int, lease_ms: int) -> Claim:
    """Derive the reason why a claim was refused from the item (in plain Python) that DynamoDB returned with
    the failed condition."""
    if "completedAt" in item:
        return Completed()
    if int(item.get("attempts", 0)) >= attempt:
        return Superseded()
    if "startedAt" not in item:
        return OutOfSequence()
    return InProgress(max(0, int(item["startedAt"]) + lease_ms - now_ms) / 1000)
