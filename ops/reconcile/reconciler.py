"""One run of `reconcile`: find candidates, look at each of them a second time, and requeue what is stuck."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal, get_args

from msgspec import Struct, field, structs

from mailroom.aws.dynamo import plain
from mailroom.environment import OutcomesSettings
from mailroom.message.message import Key
from mailroom.outcomes import RetrySchedule
from ops.reconcile.judge import JUDGED_BY, Finding, Memory, StaleAfter, State, is_overdue, judge
from ops.requeue.requeuer import Requeuer
from ops.requeue.selection import MessageRef
from ops.requeue.stage import DeployedStage, StoredMessage, Table
from ops.screen import Refused
from ops.stage import depth, function_settings, function_variables, is_dead, queue_urls, source_url
from ops.tables import key_of, parts, segments

TOGETHER = 100
"""Messages that are read and requeued at once: of 400 KB each, at most."""
SEGMENTS = 8
"""Segments of a table, read side by side."""
_WORKERS = 8
_TABLES: tuple[Table, ...] = get_args(Table)
_DEAD_LETTER_VISIBLE_SECONDS = 900.0
"""For as long after its mark a dead letter counts as there: SQS's counts lag behind by a minute or more, and
while an operator moves a dead letter, neither queue counts it for a moment."""
_WAITS = (
    *("LEASE_SECONDS", "BACKOFF_CAP_SECONDS", "MISCONFIGURED_SECONDS", "RETRY_AFTER_CAP_SECONDS"),
    *("LONGEST_FAX_SECONDS", "DELAYS"),
)
"""The settings of a sender that say how long a message may stay unchanged."""


class NamedMessage(Struct, frozen=True):
    """One message that was named, as it stood before. moving: it is on its way, or over. unknown: neither
    table has it. `vouched`: the ledger may have forgotten it."""

    id: str
    event_type: str
    state: State | Literal["unknown"]
    may_be_forgotten: bool = field(default=False, name="vouched")


class Reconciled(Struct, frozen=True, kw_only=True):
    """`looked_at`: items, by table. `found`: messages by state and channel, as they stood before; those that
    had moved on by themselves are left out. `vouched`: the ledger may have forgotten so many of the missing
    ones, and the operator has confirmed that they were never sent. `messages`: each message that was named;
    empty if the whole stage was scanned. `queues`: messages in each channel's queues, roughly. `put_back`:
    how many were requeued, by channel; `failed`: how many could not be."""

    stage: str
    dry_run: bool
    older_than_seconds: int
    looked_at: dict[Table, int]
    found: dict[State, dict[str, int]]
    confirmed_count: int = field(name="vouched")
    messages: list[NamedMessage]
    queues: dict[str, int]
    put_back: dict[str, int]
    failed: int

    @property
    def stuck(self) -> int:
        """How many messages are to be requeued."""
        return sum(sum(self.found.get(state, {}).values()) for state in ("missing", "overdue"))

    @property
    def incomplete(self) -> bool:
        """Whether a message is left that should be on its way and is not, or may not be."""
        kept = any(self.found.get(state) for state in ("gone", "dead_letters", "undated"))
        unknown = any(each.state == "unknown" for each in self.messages)
        return bool(self.failed or unknown or kept or (self.dry_run and self.stuck))


class Candidates(Struct):
    """Messages that may be stuck. `looked_at`: items that were scanned, by table. `missing_at`: when the
    mailbox was scanned (epoch seconds), if some of it is unknown to the ledger. `named`: an operator named
    them; `unknown`: named, and in neither table; "" is the channel if it was not given."""

    keys: list[Key]
    looked_at: dict[Table, int]
    missing_at: float | None = None
    named: bool = False
    unknown: Sequence[Key] = ()


class Reconciler:
    """Works for one stage. `confirmed`: an operator has confirmed that messages which the ledger may have
    forgotten were never sent."""

    def __init__(self, stage: DeployedStage, stale_after: StaleAfter, *, confirmed: bool) -> None:
        self._stage = stage
        self._stale_after = stale_after
        mailbox, ledger = (
            stage.dynamodb.describe_table(TableName=stage.name(table))["Table"] for table in _TABLES
        )
        self._items = mailbox.get("ItemCount", 0) + ledger.get("ItemCount", 0)
        ttl = stage.dispatch.ledger_ttl_seconds
        self._memory = Memory.of(mailbox, ledger, ttl, stage.clock(), confirmed=confirmed)

    def scan(self, progress: Callable[[int, int], None] = lambda _seen, _items: None) -> Candidates:
        """Find what is missing from the ledger or overdue in it. `progress` takes how many items were read,
        and of about how many."""
        candidates = Candidates([], {"mailbox": 0, "ledger": 0})
        for table in _TABLES:
            for count, keys in segments(SEGMENTS, partial(self._page, table)):
                candidates.looked_at[table] += count
                candidates.keys += keys
                progress(sum(candidates.looked_at.values()), self._items)
            if table == "mailbox" and candidates.keys:
                candidates.missing_at = self._stage.clock()
        return candidates

    def second_look_in(self, candidates: Candidates) -> float:
        """Seconds until what was missing counts as lost: what is merely on its way shows up until then."""
        if candidates.missing_at is None:
            return 0.0
        return max(0.0, candidates.missing_at + self._stale_after.older_than - self._stage.clock())

    def named(self, refs: Sequence[MessageRef]) -> Candidates:
        """The messages that an operator names. Raises Refused where several have an id."""
        found: dict[Key, bool] = {}
        with ThreadPoolExecutor(_WORKERS) as pool:
            for ref, channels in zip(refs, pool.map(self._channels, refs), strict=True):
                if len(channels) > 1:
                    names = " and ".join(sorted(channels))
                    raise Refused(f"{ref.id}: {names} have messages with that id; choose one with --channel.")
                found[Key(ref.id, next(iter(channels), ref.event_type or ""))] = bool(channels)
        keys = [key for key, there in found.items() if there]
        unknown = [key for key, there in found.items() if not there]
        return Candidates(keys, {"mailbox": 0, "ledger": 0}, named=True, unknown=unknown)

    def evaluate(self, candidates: Candidates, *, dry_run: bool) -> Reconciled:
        """The state of each candidate now. Nothing is requeued."""
        counts: dict[State, Counter[str]] = {}
        confirmed_count, messages = 0, []
        for finding, message in (each for batch in self._judged(candidates) for each in batch):
            id_, event_type = message.key.id, message.key.event_type
            counts.setdefault(finding.state, Counter())[event_type] += 1
            confirmed_count += finding.may_be_forgotten
            if candidates.named:
                messages.append(NamedMessage(id_, event_type, finding.state, finding.may_be_forgotten))
        messages += [NamedMessage(key.id, key.event_type, "unknown") for key in candidates.unknown]
        counts.pop("moving", None)
        return Reconciled(
            stage=self._stage.stage,
            dry_run=dry_run,
            older_than_seconds=round(self._stale_after.older_than),
            looked_at=candidates.looked_at,
            found={state: dict(sorted(counts[state].items())) for state in sorted(counts)},
            confirmed_count=confirmed_count,
            messages=messages,
            queues={
                channel: sum(depth(self._stage.sqs, url).all for url in lanes.values())
                for channel, lanes in self._stage.dispatch.routes.items()
            },
            put_back={},
            failed=0,
        )

    def requeue(self, candidates: Candidates, answer: Reconciled) -> Reconciled:
        """Requeue the candidates that are still stuck, judged anew; the answer with their number."""
        requeuer = Requeuer(self._stage)
        counts: Counter[str] = Counter()
        failed = 0
        for batch in self._judged(candidates):
            stuck = [(finding.route, message) for finding, message in batch if finding.route is not None]
            done, left = requeuer.requeue(stuck)
            counts += done
            failed += left
        return structs.replace(answer, put_back=dict(sorted(counts.items())), failed=failed)

    def _page(self, table: Table, segment: int, start: Any) -> tuple[tuple[int, list[Key]], Any]:
        """A page of a table: how many items it has, and its candidates; and where the segment goes on."""
        fields = ("id", "event_type", *(JUDGED_BY if table == "ledger" else ()))
        names = {f"#f{at}": name for at, name in enumerate(fields)}
        asked: Any = {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
        if table == "ledger":
            asked["FilterExpression"] = "attribute_not_exists(completedAt)"
        if start:
            asked["ExclusiveStartKey"] = start
        now = self._stage.clock()
        reply = self._stage.dynamodb.scan(
            TableName=self._stage.name(table), Segment=segment, TotalSegments=SEGMENTS, **asked
        )
        items = {key_of(each): plain(each) for each in reply["Items"]}
        if table == "mailbox":
            known = self._stage.read("ledger", items)
            keys = [key for key in items if key not in known]
        else:
            keys = [key for key, item in items.items() if is_overdue(item, now, self._stale_after)]
        return (reply["ScannedCount"], keys), reply.get("LastEvaluatedKey")

    def _channels(self, ref: MessageRef) -> set[str]:
        """The channels that have a message of that id."""
        items = (each for table in _TABLES for each in self._stage.items(table, ref))
        return {each["event_type"] for each in items}

    def _judged(self, candidates: Candidates) -> Iterator[list[tuple[Finding, StoredMessage]]]:
        """The candidates with their states, as many at once as are read together."""
        may_hold = DeadLetterQueues(self._stage).may_hold
        for part in parts(candidates.keys, TOGETHER):
            ledger = self._stage.read("ledger", part)
            mailbox = self._stage.read("mailbox", part)
            now = self._stage.clock()
            messages = [StoredMessage(key, ledger.get(key), mailbox.get(key)) for key in part]
            yield [(judge(each, now, self._stale_after, self._memory, may_hold), each) for each in messages]


def stale_after_of(stage: DeployedStage, older_than: float) -> StaleAfter:
    """Read the bounds of a stage from how its senders are set up. Raises Refused."""
    found = function_settings(stage.functions, stage.name("outcomes"), OutcomesSettings)
    retries = RetrySchedule(found.retry_delay_seconds, found.retry_growth, found.retry_delay_cap_seconds)
    longest = {
        channel: max(each for url in lanes.values() for each in _waits(stage, url))
        for channel, lanes in stage.dispatch.routes.items()
    }
    return StaleAfter(older_than, longest, retries)


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


class DeadLetterQueues:
    """The dead-letter queues of a stage. Each is read once, and only if a message is marked as a dead letter.

    The ledger's mark stays until a worker claims the message. A dead letter does not: SQS deletes it when its
    retention is over, and people purge queues. A marked message without a dead letter is stuck.
    """

    def __init__(self, stage: DeployedStage) -> None:
        self._stage = stage
        self._held: dict[str, list[tuple[int, float]]] = {}
        """By channel, each dead-letter queue's number of dead letters, and for how many seconds it keeps
        one."""

    def may_hold(self, channel: str, marked_at: float) -> bool:
        """Whether the dead letter of a message that was marked then (epoch seconds) may be there yet."""
        age = self._stage.clock() - marked_at
        if age < _DEAD_LETTER_VISIBLE_SECONDS:
            return True
        if channel not in self._held:
            self._held[channel] = [self._holds(url) for url in self._urls(channel)]
        # The mark is made after the message died, and SQS counts the retention from then or from before.
        return any(count and age < kept for count, kept in self._held[channel])

    def _urls(self, channel: str) -> list[str]:
        """The dead-letter queues in which a message of the channel can lie: its own, and the schedules'."""
        dispatch, found = self._stage.dispatch, queue_urls(self._stage.sqs, self._stage.stage)
        sources = {*dispatch.routes.get(channel, {}).values(), dispatch.delayed_routes.get(channel, "")}
        names = {url.rpartition("/")[2] for url in sources}
        names.add(dispatch.schedule_target_arn.rpartition(":")[2])
        dead = (url for name, url in found.items() if is_dead(name))
        return [url for url in dead if source_url(url).rpartition("/")[2] in names]

    def _holds(self, url: str) -> tuple[int, float]:
        sqs = self._stage.sqs
        reply = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["MessageRetentionPeriod"])
        return depth(sqs, url).all, float(reply["Attributes"]["MessageRetentionPeriod"])
