"""The state of a message, judged by its two items, the time, and what is known of the stage."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from mailroom.clock import epoch
from mailroom.environment import OutcomesSettings
from mailroom.ledger.reader import REMEMBERED_SECONDS
from mailroom.outcomes import RetrySchedule
from ops.dead_letters.queues import DeadQueue
from ops.requeue.requeuer import Route, StoredMessage, awaits_queuing
from ops.requeue.stage import DeployedStage
from ops.stage import depth, function_settings, function_variables, is_dead, queue_urls

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
_DEAD_LETTER_VISIBLE_SECONDS = 900.0
"""For as long after its mark a dead letter counts as there: SQS's counts lag behind by a minute or more, and
while an operator moves a dead letter, neither queue counts it for a moment."""
_WAITS = (
    *("LEASE_SECONDS", "BACKOFF_CAP_SECONDS", "MISCONFIGURED_SECONDS", "RETRY_AFTER_CAP_SECONDS"),
    *("LONGEST_FAX_SECONDS", "DELAYS"),
)
"""The settings of a sender that say how long a message may stay unchanged."""


class Finding(Struct, frozen=True):
    """The state of a message. moving: it is on its way, or over. missing: the ledger does not know it.
    overdue: its next step should have happened long ago. dead_letters: it seems to lie in a dead-letter
    queue. gone: begun, and its item is no longer in the mailbox. undated: it may be older than what the
    ledger remembers. `vouched`: a missing message may be older too, but the operator's word stands for it.
    `route`: who requeues it."""

    state: State
    route: Route | None = None
    vouched: bool = False


class StaleAfter(Struct, frozen=True):
    """How long a message may stay unchanged before it counts as overdue. A mistake costs a second queue
    message, which the claim drops: so the bounds need not be tight.

    `older_than` is the operator's own bound, in seconds; `longest` is how long a channel's queue and sender
    may leave a message unchanged; `retries` is when a fax is tried again.
    """

    older_than: float
    longest: Mapping[str, float]
    retries: RetrySchedule

    @classmethod
    def of(cls, stage: DeployedStage, older_than: float) -> "StaleAfter":
        """The bounds of a stage, as its senders are set up. Raises Refused."""
        found = function_settings(stage.functions, stage.name("outcomes"), OutcomesSettings)
        retries = RetrySchedule(found.retry_delay_seconds, found.retry_growth, found.retry_delay_cap_seconds)
        longest = {
            channel: max(each for url in lanes.values() for each in _waits(stage, url))
            for channel, lanes in stage.dispatch.routes.items()
        }
        return cls(older_than, longest, retries)

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


def _waits(stage: DeployedStage, url: str) -> Iterator[float]:
    """The visibility time-out of a queue, and the waits of its senders."""
    reply = stage.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout", "QueueArn"])
    yield float(reply["Attributes"]["VisibilityTimeout"])
    mappings = stage.functions.get_paginator("list_event_source_mappings")
    for page in mappings.paginate(EventSourceArn=reply["Attributes"]["QueueArn"]):
        for mapping in page["EventSourceMappings"]:
            # arn:aws:lambda:region:account:function:name
            variables = function_variables(stage.functions, mapping["FunctionArn"].split(":")[6])
            for name in _WAITS:
                value = json.loads(variables.get(name, "0"))
                yield from map(float, value if isinstance(value, list) else [value])


class Memory(Struct, frozen=True):
    """Whether the ledger may have forgotten messages. `complete`: the ledger has forgotten none so far.
    Otherwise a message that the ledger does not know may have been sent before, and must not be sent again.

    What a producer wrote does not count: `send_at` and `ttl` may have been changed after the message was
    sent. Today's setting does not count either: an item lives by the setting at the time of its last write.
    """

    complete: bool
    vouched: bool = False
    """Whether the operator's word counts for what the ledger may have forgotten."""

    @classmethod
    def of(cls, mailbox: "Table", ledger: "Table", ttl: float, now: float, *, vouched: bool) -> "Memory":
        """A stage's, by what DynamoDB says of its tables. `ttl`: what its functions are set to now, in
        seconds; a stage of an older version may have less than the least of this one."""
        made, mailbox_made = (each["CreationDateTime"].timestamp() for each in (ledger, mailbox))
        # What its predecessor, or the table that was backed up, knew is not known to it.
        first = made <= mailbox_made + _DEPLOYED_SECONDS
        restored = any(each.get("RestoreSummary") for each in (ledger, mailbox))
        forgot = now - made > min(ttl, REMEMBERED_SECONDS) - DAY
        return cls(first and not restored and not forgot, vouched)


class DeadLetterQueues:
    """The dead-letter queues of a stage. Each is read once, and only if a message is marked as a dead letter.

    The ledger's mark stays until a worker claims the message. A dead letter does not: SQS deletes it when its
    retention is over, and people purge queues. A marked message without a dead letter is stuck.
    """

    def __init__(self, stage: DeployedStage) -> None:
        self._stage = stage
        self._held: dict[str, list[tuple[int, float]]] = {}
        """By channel, of each of its queues: how many dead letters it holds, and for how many seconds."""

    def may_hold(self, channel: str, marked_at: float) -> bool:
        """Whether the dead letter of a message that was marked then (epoch seconds) may be there yet."""
        age = self._stage.clock() - marked_at
        if age < _DEAD_LETTER_VISIBLE_SECONDS:
            return True
        if channel not in self._held:
            self._held[channel] = [self._holds(url) for url in sorted(self._urls(channel))]
        # The mark is made after the message died, and SQS counts the retention from then or from before.
        return any(count and age < kept for count, kept in self._held[channel])

    def _urls(self, channel: str) -> set[str]:
        """The dead-letter queues in which a message of the channel can lie: its own, and the schedules'."""
        dispatch, found = self._stage.dispatch, queue_urls(self._stage.sqs, self._stage.stage)
        sources = {*dispatch.routes.get(channel, {}).values(), dispatch.delayed_routes.get(channel, "")}
        names = {url.rpartition("/")[2] for url in sources} | {
            dispatch.schedule_target_arn.rpartition(":")[2]
        }
        dead = (DeadQueue(name, url) for name, url in found.items() if is_dead(name))
        return {each.url for each in dead if each.source_url.rpartition("/")[2] in names}

    def _holds(self, url: str) -> tuple[int, float]:
        sqs = self._stage.sqs
        reply = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["MessageRetentionPeriod"])
        return depth(sqs, url).all, float(reply["Attributes"]["MessageRetentionPeriod"])


def judge(
    message: StoredMessage,
    now: float,
    stale_after: StaleAfter,
    memory: Memory,
    may_hold: Callable[[str, float], bool],
) -> Finding:
    """The state of a message that was found missing or overdue before. `may_hold` is that of
    DeadLetterQueues."""
    if message.ledger is None:
        if message.mailbox is None:
            return Finding("moving")
        if memory.complete or memory.vouched:
            return Finding("missing", "dispatch", vouched=not memory.complete)
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
