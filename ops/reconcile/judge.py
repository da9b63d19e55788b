"""Judges the state of a message by its two items, the time, and what is known of the stage. Reads nothing."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from mailroom.clock import epoch
from mailroom.ledger.reader import REMEMBERED_SECONDS
from mailroom.outcomes import RetrySchedule
from ops.requeue.stage import Route, StoredMessage, awaits_queuing

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import TableDescriptionTypeDef as Table

Item = Mapping[str, Any]
State = Literal["moving", "missing", "overdue", "dead_letters", "gone", "undated"]
JUDGED_BY = (
    *("status", "updatedAt", "scheduledFor", "startedAt", "completedAt", "attempts", "error"),
    "dead_lettered_at",
)
"""The attributes of a ledger item that `is_overdue` reads."""

DAY = 86_400.0
_DEPLOYED_SECONDS = 3_600.0
"""One deployment makes both tables within this time."""


class Finding(Struct, frozen=True):
    """The state of a message. moving: it is on its way, or over. missing: the ledger does not know it.
    overdue: its next step should have happened long ago. dead_letters: it seems to lie in a dead-letter
    queue. gone: begun, and its item is no longer in the mailbox. undated: the ledger may have forgotten it.
    `may_be_forgotten`: the same of a missing message that the operator has confirmed as never sent.
    `route`: who requeues it."""

    state: State
    route: Route | None = None
    may_be_forgotten: bool = False


class StaleAfter(Struct, frozen=True):
    """How long a message may stay unchanged before it counts as overdue. A mistake costs a second queue
    message, which the claim drops: so the bounds need not be tight.

    `older_than` is the operator's own bound, in seconds; `longest` is how long a channel's queue and sender
    may leave a message unchanged; `retries` is when a fax is tried again.
    """

    older_than: float
    longest: Mapping[str, float]
    retries: RetrySchedule

    def due(self, ledger: Item) -> float:
        """When a message should have changed, at the latest (epoch seconds)."""
        if ledger["status"] == "scheduled":
            return epoch(ledger["scheduledFor"]) + self.older_than
        due = epoch(ledger["updatedAt"]) + self.older_than
        if awaits_queuing(ledger):
            return due
        due += self.longest.get(ledger["event_type"], max(self.longest.values(), default=0))
        if ledger["status"] == "retrying" and "error" in ledger:
            due += self.retries.after(int(ledger.get("attempts", 0)))
        return due


class Memory(Struct, frozen=True):
    """Whether the ledger may have forgotten messages. `complete`: the ledger has forgotten none so far.
    Otherwise a message that the ledger does not know may have been sent before, and must not be sent again.

    What a producer wrote does not count: `send_at` and `ttl` may have been changed after the message was
    sent. Today's setting does not count either: an item lives by the setting at the time of its last write.
    """

    complete: bool
    confirmed: bool = False
    """Whether an operator has confirmed that messages which the ledger may have forgotten were never sent."""

    @classmethod
    def of(cls, mailbox: "Table", ledger: "Table", ttl: float, now: float, *, confirmed: bool) -> "Memory":
        """Derive it from what DynamoDB says of a stage's tables. `ttl`: what its functions are set to now, in
        seconds; a stage of an older version may have less than the least of this one."""
        made, mailbox_made = (each["CreationDateTime"].timestamp() for each in (ledger, mailbox))
        # A ledger does not know what its predecessor, or the table that was backed up, knew.
        first = made <= mailbox_made + _DEPLOYED_SECONDS
        restored = any(each.get("RestoreSummary") for each in (ledger, mailbox))
        forgot = now - made > min(ttl, REMEMBERED_SECONDS) - DAY
        return cls(first and not restored and not forgot, confirmed)


def judge(
    message: StoredMessage,
    now: float,
    stale_after: StaleAfter,
    memory: Memory,
    may_hold: Callable[[str, float], bool],
) -> Finding:
    """The state of a message that was found missing or overdue before. `may_hold` says whether a channel's
    dead-letter queues may hold a message that was marked then (epoch seconds)."""
    if message.ledger is None:
        if message.mailbox is None:
            return Finding("moving")
        if memory.complete or memory.confirmed:
            return Finding("missing", "dispatch", may_be_forgotten=not memory.complete)
        return Finding("undated")
    ledger = message.ledger
    if not is_overdue(ledger, now, stale_after):
        return Finding("moving")
    marked = ledger.get("dead_lettered_at")
    if marked is not None and may_hold(ledger["event_type"], float(marked) / 1000):
        return Finding("dead_letters")
    if ledger["status"] == "scheduled":
        return Finding("overdue", "scheduled")
    if ledger["event_type"] == "fax":
        return Finding("overdue", "outcomes")
    return Finding("overdue", "queue") if message.mailbox is not None else Finding("gone")


def is_overdue(ledger: Item, now: float, stale_after: StaleAfter) -> bool:
    """Whether a message without an outcome should have changed before now."""
    return "completedAt" not in ledger and "status" in ledger and now > stale_after.due(ledger)
