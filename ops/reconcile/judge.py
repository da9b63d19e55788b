"""What is to be done about a message, told from its two items and the time."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from mailroom.clock import epoch
from ops.reconcile.memory import Memory
from ops.reconcile.patience import Patience
from ops.resend.judge import awaits_its_copy

Item = Mapping[str, Any]
MayHold = Callable[[str, float], bool]
"""Whether a dead-letter queue may hold a message of that channel, marked then (epoch seconds)."""

Way = Literal["dispatch", "outcomes", "queue", "scheduled"]
"""Who puts it back: dispatch, what nobody has begun; outcomes, a fax; its sender's own queue, a message that
was begun; the queue of schedules, what waited for its time."""
State = Literal["moving", "missing", "overdue", "dead_letters", "gone", "undated"]
JUDGED_BY = (
    *("status", "updatedAt", "scheduledFor", "startedAt", "completedAt", "attempts", "error"),
    "dead_lettered_at",
)
"""The attributes of a ledger item that `overdue` looks at."""


class Finding(Struct, frozen=True):
    """How a message stands. moving: it is on its way, or over. missing: the ledger does not know it. overdue:
    something should have happened long ago. dead_letters: it lies in a dead-letter queue, as far as can be
    told. gone: begun, and its item is no longer in the mailbox. undated: it may be older than what the ledger
    remembers. `vouched`: so is one that is missing, but the operator's word stands for it."""

    state: State
    way: Way | None = None
    vouched: bool = False


def judge(
    ledger: Item | None,
    mailbox: Item | None,
    now: float,
    patience: Patience,
    memory: Memory,
    may_hold: MayHold,
) -> Finding:
    """How a message stands that was found missing or overdue before."""
    if ledger is None:
        if mailbox is None:
            return Finding("moving")
        return _unknown(memory)
    if not overdue(ledger, now, patience):
        return Finding("moving")
    marked = ledger.get("dead_lettered_at")
    if marked is not None and may_hold(ledger["event_type"], float(marked) / 1000):
        return Finding("dead_letters")
    if ledger["status"] == "scheduled":
        return Finding("overdue", "scheduled")
    if ledger["event_type"] == "fax":
        return Finding("overdue", "outcomes")
    return Finding("overdue", "queue") if mailbox is not None else Finding("gone")


def _unknown(memory: Memory) -> Finding:
    if memory.complete:
        return Finding("missing", "dispatch")
    return Finding("missing", "dispatch", vouched=True) if memory.vouched else Finding("undated")


def overdue(ledger: Item, now: float, patience: Patience) -> bool:
    """Whether a message should have moved on long ago."""
    return "completedAt" not in ledger and "status" in ledger and now > _expected(ledger, patience)


def _expected(ledger: Item, patience: Patience) -> float:
    """When it should have moved on, at the latest."""
    if ledger["status"] == "scheduled":
        return epoch(ledger["scheduledFor"]) + patience.older_than
    changed = epoch(ledger["updatedAt"]) + patience.older_than
    if awaits_its_copy(ledger):
        return changed
    changed += patience.quiet(ledger["event_type"])
    if ledger["status"] == "retrying" and "error" in ledger:
        return changed + patience.retries.after(int(ledger.get("attempts", 0)))
    return changed
