"""Results of a claim, the one conditional write that every delivery of a message begins with."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, structs

from mailroom.message.message import Key
from mailroom.message.outcome import Evidence, NotFound


class Try(Struct, frozen=True, order=True):
    """A submit that may have been made, and whose outcome is unknown."""

    began: int
    """Time of the claim in epoch milliseconds."""
    account: str
    """Provider and account that the claim was for, or ANY_ACCOUNT."""

    @property
    def text(self) -> str:
        """The form in which the ledger keeps a try in `unsettled_tries`."""
        return f"{self.began} {self.account}"


def tries_in(texts: Iterable[str]) -> tuple[Try, ...]:
    """Read `unsettled_tries`, oldest try first."""
    parts = (text.split(" ", 1) for text in texts)
    return tuple(sorted(Try(int(began), account) for began, account in parts))


class Checkpoint(Struct, frozen=True):
    """A provider's acceptance of an attempt that is under way."""

    provider_id: str
    provider: str
    submitted_at: int
    """Time of the submit in epoch milliseconds."""


class Claimed(Struct, frozen=True):
    """A message that belongs to this worker until the lease ends."""

    key: Key
    token: str
    """Proof of ownership: a condition of every further write."""
    account: str | None = None
    """Account that this claim may submit at; None if it may not submit."""
    unsettled: tuple[Try, ...] = ()
    """Earlier tries of unknown outcome, oldest first; empty if the attempt was certainly not submitted."""
    checkpoint: Checkpoint | None = None
    """Acceptance by the provider of this attempt: follow it, never submit again."""
    redirected_to: str | None = None
    """Recipient that gets the message in place of its own recipients."""
    redriven: bool = False
    """Whether an operator has put the message back from a dead-letter queue."""

    def after(self, evidence: Evidence) -> "Claimed":
        """Settle the earlier tries if the evidence proves that none of them arrived."""
        return structs.replace(self, unsettled=()) if isinstance(evidence, NotFound) else self

    @property
    def accounts(self) -> frozenset[str]:
        """Accounts at which an earlier try may have arrived."""
        return frozenset(earlier.account for earlier in self.unsettled)


class Completed(Struct, frozen=True):
    """Refusal of a claim: the message has its outcome, so the record is dropped."""


class Superseded(Struct, frozen=True):
    """Refusal of a claim: a later attempt exists, so the record is a stale copy and is dropped."""


class InProgress(Struct, frozen=True):
    """Refusal of a claim: another worker holds the message."""

    seconds: float
    """Rest of that worker's lease."""


class OutOfSequence(Struct, frozen=True):
    """Refusal of a claim: the attempt before this one has not ended. The attempt's number was made up, or the
    message's item was erased."""


Claim = Claimed | Completed | Superseded | InProgress | OutOfSequence


def why_not_claimed(item: Mapping[str, Any], attempt: int, now_ms: int, lease_ms: int) -> Claim:
    """Derive the refusal from the item (in plain Python) that DynamoDB returned with the failed condition."""
    if "completedAt" in item:
        return Completed()
    if int(item.get("attempts", 0)) >= attempt:
        return Superseded()
    if "startedAt" not in item:
        return OutOfSequence()
    return InProgress(max(0, int(item["startedAt"]) + lease_ms - now_ms) / 1000)
