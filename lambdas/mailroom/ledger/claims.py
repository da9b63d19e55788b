"""What a claim of a message finds.

Every delivery of a message starts with one claim, one conditional write:

worker A   claim ─────── submit ──✗ dies            lease = function time-out + 60 s
queue            visibility time-out ────────────────────▶ redelivers
worker B                                lease over ▶ claim ─ look for evidence ─ complete, or submit
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, structs

from mailroom.message.message import Key
from mailroom.message.outcome import Evidence, NotFound


class Claimed(Struct, frozen=True):
    """The message is this worker's until its lease ends; `token` goes with every further write.

    `since` is when an earlier worker claimed it and was not heard of again (epoch milliseconds; the first
    of several): the outcome of what was done since is unknown. None: this attempt is certainly not submitted.
    `accounts` are those at which something may have been done since then: what one of them does not know,
    another may. `provider_id` is the checkpoint of an attempt that is under way since `submitted_at`: resume
    it, never submit. `provider` has it. `redirected_to` gets the message in place of its recipients; None:
    they get it. `account` is the one that this claim names: nothing may be submitted at another. `earlier`:
    the tries since `since` without this claim's own, as the ledger keeps them. `redriven`: it was a dead
    letter, and a person has put it back on its way.
    """

    key: Key
    token: str
    since: int | None
    provider_id: str | None
    submitted_at: int | None = None
    provider: str | None = None
    accounts: frozenset[str] = frozenset()
    redirected_to: str | None = None
    account: str | None = None
    earlier: tuple[str, ...] = ()
    redriven: bool = False

    def after(self, evidence: Evidence) -> "Claimed":
        """The claim, once it is known what became of the earlier tries."""
        return structs.replace(self, since=None) if isinstance(evidence, NotFound) else self

    @property
    def in_doubt(self) -> list[int]:
        """When each try began that may have submitted the message (epoch milliseconds), oldest first; []: it
        is known that none did."""
        if self.since is None:
            return []
        began = [each.split(" ", 1) for each in self.earlier]
        return sorted(int(at) for at, account in began if account != NOWHERE) or [self.since]


class Completed(Struct, frozen=True):
    """The message has its outcome: drop the record."""


class Superseded(Struct, frozen=True):
    """A later attempt exists: this record is a stale duplicate; drop it."""


class InProgress(Struct, frozen=True):
    """Someone else is on it for `seconds` more at most: back to the queue with that visibility."""

    seconds: float


class OutOfSequence(Struct, frozen=True):
    """No attempt that has ended leads up to this one: its number is made up, or the item was erased."""


UNASKED = ""
"""The account of a try whose provider nobody will ask."""
NOWHERE = "-"
"""The account of a try whose account could not be told. Such a try submits nothing."""


def tried(now_ms: int, account: str) -> str:
    """A try that begins now at an account, as the ledger keeps it in `unsettled_tries`."""
    return f"{now_ms} {account}"


def accounts_of(item: Mapping[str, Any]) -> frozenset[str]:
    """Where the unsettled tries were made, told from the item (in plain Python)."""
    accounts = {each.split(" ", 1)[1] for each in item.get("unsettled_tries", ())}
    return frozenset(accounts - {NOWHERE})


Claim = Claimed | Completed | Superseded | InProgress | OutOfSequence


def why_not_claimed(item: Mapping[str, Any], attempt: int, now_ms: int, lease_ms: int) -> Claim:
    """Why a claim's condition failed, told from the item that DynamoDB sent along (in plain Python)."""
    if "completedAt" in item:
        return Completed()
    if int(item.get("attempts", 0)) >= attempt:
        return Superseded()
    if "startedAt" not in item:
        return OutOfSequence()
    return InProgress(max(0, int(item["startedAt"]) + lease_ms - now_ms) / 1000)
