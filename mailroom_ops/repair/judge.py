"""Diagnosis of a message that may be stuck: its state and the possible cures, derived from its items in
mailbox and ledger alone.

Each cure is safe to repeat: the claim drops a redundant queue message, and the ledger's conditions reject a
second outcome. Only two things can go wrong, and an operator has to confirm both. A message that the ledger
has forgotten, because its item has expired, may be sent twice. A message that an operator ends as sent,
although it was not sent, is never sent.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from mailroom.clock import epoch, iso
from mailroom.ledger.items import RUN_UNKNOWN, WAIT
from mailroom.ledger.status_reader import REMEMBERED_SECONDS
from mailroom.mailbox import RESTORED
from mailroom_ops.shared.stage_queues import Route, StoredMessage, awaits_queuing
from mailroom_ops.shared.times import short
from mailroom_stacks.settings.times import AWS

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import TableDescriptionTypeDef as Table

Item = Mapping[str, Any]
State = Literal["fine", "missing", "overdue", "dead_letter", "gone", "forgotten", "unknown"]
Cure = Literal["requeue", "redrive", "end"]
JUDGED_BY = ("status", "updatedAt", "scheduledFor", "startedAt", "completedAt", WAIT)
"""Attributes of a ledger item, besides its key, that `Judge.overdue` reads."""
SENTENCES: dict[State, str] = {
    "fine": "on its way, waiting for its time or its campaign's run, or completed",
    "missing": "in the mailbox, but without a record: if it is put back, it is sent once",
    "overdue": "started, but unchanged for too long: if it is put back, it is sent once",
    "dead_letter": "a dead letter: fix its cause first (see mailroom messages dead-letters); then it is put "
    "back into its queue",
    "gone": "started, but it is no longer in the mailbox. It may have been sent, or may still be queued: "
    "ask its provider, then record its outcome with mailroom messages settle. Under a new id it may be sent "
    "twice",
    "forgotten": "without a record, which may have expired, so it may have been sent. Send it "
    "again only if you know that it was never sent",
    "unknown": "not in the mailbox, and without a record; check its id, its channel and the stage",
}
"""Sentences about a message, by its state."""

DAY = 86_400.0
_DEPLOYED_SECONDS = 3_600.0
"""Maximum number of seconds by which one deployment creates the ledger later than the mailbox."""
_LONGEST_WAIT_SECONDS = 43_200.0
"""Maximum visibility timeout of SQS, 12 hours. No wait that can be set is longer."""
PATIENCE_SECONDS = 900.0
"""Default number of seconds after which a message counts as overdue."""
_DEAD_LETTER_SECONDS = 14 * DAY
"""Maximum retention of SQS. After it, the dead letter no longer exists, but `dead_lettered_at` stays in the
ledger item until a worker claims the message."""
LONGEST_LEASE_SECONDS = 1_500.0
"""Maximum lease of a claim: a function runs for 15 minutes at most, and a claim ends at most 10 minutes
later."""


class Memory(Struct, frozen=True):
    """Rules for messages without a ledger item. If `complete` is true, the ledger has not lost or expired any
    item so far, so such a message was never sent. Otherwise it may have been sent, and must not be sent
    again.

    The attributes `send_at` and `ttl` that a producer wrote are not considered, because they may have been
    changed after the message was sent. A present retention above the minimum is not relied on either, because
    the lifetime of an item depends on the setting at the time of its last write.
    """

    complete: bool
    confirmed: bool = False
    """Whether an operator has confirmed that messages which the ledger may have forgotten were never sent."""

    @classmethod
    def of(cls, mailbox: "Table", ledger: "Table", now_s: float, *, confirmed: bool) -> "Memory":
        """Derive the rules from DynamoDB's description of a stage's tables."""
        created, mailbox_created = (table["CreationDateTime"].timestamp() for table in (ledger, mailbox))
        # A ledger that replaced another one, or that was restored from a backup, does not have items of all
        # messages that were sent before.
        first = created <= mailbox_created + _DEPLOYED_SECONDS
        restored = any(table.get("RestoreSummary") for table in (ledger, mailbox))
        forgot = now_s - created > REMEMBERED_SECONDS - DAY
        return cls(first and not restored and not forgot, confirmed)


class Diagnosis(Struct, frozen=True):
    """Diagnosis of a message, with one of these states:

    fine: the message is on its way, waits, or has ended. missing: its ledger item is missing, and it was
    never sent. overdue: its next step should have happened long ago. dead_letter: it seems to be in a
    dead-letter queue. gone: it was started, and its mailbox item no longer exists. forgotten: its ledger item
    is missing, but may have existed. unknown: neither table has it.

    `cures` are the possible cures, the safe one first. `route` is the part of Mailroom that requeues the
    message. `not_ended` is the reason why an operator cannot record an outcome of the message, or an empty
    text if they can. If `twice` is true, a requeued message may be sent twice."""

    state: State
    cures: tuple[Cure, ...] = ()
    route: Route | None = None
    not_ended: str = "it has no record of being sent"
    twice: bool = False


class Judge(Struct, frozen=True):
    """Diagnoses messages of a stage."""

    memory: Memory
    older_than: float | None = None
    """Seconds after which a message counts as overdue. Default: 15 minutes, and 12 hours more if a queue may
    hide the message. Too short a time only causes a second queue message, which the claim drops."""
    line_seconds: float = AWS.longest_fax
    """Maximum number of seconds for which a fax occupies its telephone line."""
    lease_seconds: float = LONGEST_LEASE_SECONDS
    """Maximum number of seconds for which a worker's claim on a message holds."""

    @property
    def patience(self) -> float:
        """Seconds after which a message that no queue can hide counts as overdue, and a message without a
        ledger item as lost."""
        return PATIENCE_SECONDS if self.older_than is None else self.older_than

    def overdue(self, ledger: Item, now_s: float) -> bool:
        """Return whether a message is without an outcome, and should have changed before `now_s` (epoch
        seconds)."""
        if "completedAt" in ledger or "status" not in ledger:
            return False
        if _waits(ledger):
            return False
        # A scheduled message is queued shortly before its time, and its queue delays it until then.
        since = max(epoch(ledger[name]) for name in ("updatedAt", "scheduledFor") if name in ledger)
        hidden = 0.0 if awaits_queuing(ledger) or self.older_than is not None else _LONGEST_WAIT_SECONDS
        return now_s > since + self.patience + hidden

    def judge(self, message: StoredMessage, now_s: float) -> Diagnosis:
        """Return the diagnosis of a message at `now_s` (epoch seconds)."""
        if message.ledger is None:
            return self._unknown(message)
        ledger = message.ledger
        obstacle = self._not_ended(ledger, now_s)
        end: tuple[Cure, ...] = () if obstacle else ("end",)
        if not self.overdue(ledger, now_s):
            return Diagnosis("fine", end, not_ended=obstacle)
        if now_s < ledger.get("dead_lettered_at", 0) / 1000 + _DEAD_LETTER_SECONDS:
            return Diagnosis("dead_letter", ("redrive", *end), _route(message), obstacle)
        if (route := _route(message)) is None:
            return Diagnosis("gone", end, not_ended=obstacle)
        return Diagnosis("overdue", ("requeue", *end), route, obstacle)

    def _unknown(self, message: StoredMessage) -> Diagnosis:
        if message.mailbox is None:
            return Diagnosis("unknown")
        # If the mailbox was restored, the ledger may have been restored too, to an earlier time.
        if self.memory.complete and RESTORED not in message.mailbox:
            return Diagnosis("missing", ("requeue",), "dispatch")
        if self.memory.confirmed:
            return Diagnosis("forgotten", ("requeue",), "dispatch", twice=True)
        return Diagnosis("forgotten")

    def _not_ended(self, ledger: Item, now_s: float) -> str:
        """Return why an operator cannot yet record an outcome of a message, or an empty text if they can."""
        status = str(ledger.get("status", ""))
        if "completedAt" in ledger:
            return f"{status}: it has its outcome; to send it again, use mailroom messages resend"
        if _waits(ledger):
            ending = "mailroom messages cancel takes it back"
            if str(ledger.get("waits_in")).startswith(RUN_UNKNOWN):
                ending = "mailroom docs run-unknown shows how to end the wait for its campaign's run"
            return f"scheduled: it waits until the function release queues it; {ending}"
        begun_at = ledger.get("submittedAt" if "provider_id" in ledger else "startedAt", 0) / 1000
        until = begun_at + now_s - self.free_since(ledger["event_type"], now_s)
        if until > now_s:
            reason = f"a function may be sending it, or its fax line may be busy, until {short(iso(until))}"
            return f"{status}: {reason}; run this again after that time"
        return ""

    def free_since(self, event_type: str, now_s: float) -> float:
        """Return a time (epoch seconds). An attempt that was started before this time has neither a running
        worker nor a busy fax line any more."""
        return now_s - self.lease_seconds - (self.line_seconds if event_type == "fax" else 0.0)


def _route(message: StoredMessage) -> Route | None:
    """Return the route that requeues a message in the ledger, or None if the item to send no longer
    exists."""
    ledger = message.ledger or {}
    fax = ledger.get("event_type") == "fax"
    # From its first claim on, the content of a fax is in the ledger.
    if fax and (ledger.get("status") != "scheduled" or "claim_token" in ledger):
        return "outcomes"
    if message.mailbox is None:
        return None
    return "dispatch" if fax else "queue"


def _waits(ledger: Item) -> bool:
    """Return whether a message waits until the function `release` queues it. If `release` does not run, there
    is an alarm, so these messages are not repaired."""
    return ledger.get("status") == "scheduled" and WAIT in ledger
