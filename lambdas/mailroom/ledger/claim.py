"""What a claim may find. Every delivery of a message starts with one claim, one conditional write.

worker A   claim ─────── submit ──✗ dies            lease = function time-out + 60 s
queue            visibility time-out ────────────────────▶ redelivers
worker B                                lease over ▶ claim ─ look for evidence ─ complete, or submit
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailroom.message.message import Key


class Claimed(Struct, frozen=True):
    """The message is this worker's until its lease ends; `token` goes with every further write.

    `since` is when an earlier worker claimed it and was not heard of again (epoch milliseconds; the first
    of several): the outcome of what was done since is unknown. None: nobody has submitted this attempt.
    `accounts` are those at which something may have been done since then: what one of them does not know,
    another may. `provider_id` is the checkpoint of an attempt that is under way since `submitted_at`: resume
    it, never submit. `provider` has it.
    """

    key: Key
    token: str
    since: int | None
    provider_id: str | None
    submitted_at: int | None = None
    provider: str | None = None
    accounts: frozenset[str] = frozenset()


class Completed(Struct, frozen=True):
    """It has its outcome: drop the record."""


class Superseded(Struct, frozen=True):
    """A later attempt exists: this record is a stale duplicate; drop it."""


class InProgress(Struct, frozen=True):
    """Someone else is on it for `seconds` more at most: back to the queue with that visibility."""

    seconds: float


class Unfounded(Struct, frozen=True):
    """No attempt that has ended leads up to this one: its number is made up, or the item was erased."""


NOBODY_KNOWS = ""
"""Among `accounts`: one that a version of before did not write down."""


def tried(now_ms: int, account: str) -> str:
    """A try that begins now at an account, as the ledger keeps it in `unsettled_tries`."""
    return f"{now_ms} {account}"


def accounts_of(item: Mapping[str, Any], since: int | None) -> frozenset[str]:
    """Where the tries since then were made, told from the item (in plain Python)."""
    tries = [each.split(" ", 1) for each in item.get("unsettled_tries", ())]
    accounts = {account for _, account in tries}
    if str(since) not in {began for began, _ in tries}:
        accounts.add(NOBODY_KNOWS)
    return frozenset(accounts)


Claim = Claimed | Completed | Superseded | InProgress | Unfounded


def refused(item: Mapping[str, Any], attempt: int, now_ms: int, lease_ms: int) -> Claim:
    """Why a claim's condition failed, told from the item that DynamoDB sent along (in plain Python)."""
    if "completedAt" in item:
        return Completed()
    if int(item.get("attempts", 0)) >= attempt:
        return Superseded()
    if "startedAt" not in item:
        return Unfounded()
    return InProgress(max(0, int(item["startedAt"]) + lease_ms - now_ms) / 1000)
