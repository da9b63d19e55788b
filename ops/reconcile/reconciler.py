"""One run of `reconcile`: find candidates, look at each of them a second time, and requeue what is stuck."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal

from msgspec import Struct, structs

from mailroom.aws.dynamo import plain
from mailroom.message.message import Key
from ops.reconcile.states import (
    JUDGED_BY,
    DeadLetterQueues,
    Finding,
    Memory,
    StaleAfter,
    State,
    is_overdue,
    judge,
)
from ops.requeue.requeuer import Requeuer, StoredMessage
from ops.requeue.selection import MessageRef
from ops.requeue.stage import DeployedStage
from ops.screen import Refused
from ops.stage import depth
from ops.tables import key_of, parts, segments

TOGETHER = 100
"""Messages that are read and requeued at once: of 400 KB each, at most."""
SEGMENTS = 8
"""Of a table, read side by side."""
_WORKERS = 8


Table = Literal["mailbox", "ledger"]


class NamedMessage(Struct, frozen=True):
    """One message that was named, as it stood before. moving: it is on its way, or over. unknown: neither
    table has it. `vouched`: the ledger may have forgotten it."""

    id: str
    event_type: str
    state: State | Literal["unknown"]
    vouched: bool = False


class Reconciled(Struct, frozen=True, kw_only=True):
    """`looked_at`: items, by table. `found`: messages by state and channel, as they stood before; those that
    had moved on by themselves are left out. `vouched`: so many of the missing ones may be older than the
    ledger remembers, and are requeued on the operator's word. `messages`: each message that was named; empty
    if the whole stage was scanned. `queues`: messages in each channel's queues, roughly. `put_back`: how many
    were requeued, by channel; `failed`: how many could not be."""

    stage: str
    dry_run: bool
    older_than_seconds: int
    looked_at: dict[Table, int]
    found: dict[State, dict[str, int]]
    vouched: int
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
    """Works for one stage. `vouched`: the operator's word stands for what the ledger may have forgotten."""

    def __init__(self, stage: DeployedStage, stale_after: StaleAfter, *, vouched: bool) -> None:
        self._stage = stage
        self._stale_after = stale_after
        self._names: dict[Table, str] = {"mailbox": stage.mailbox_table, "ledger": stage.ledger_table}
        mailbox, ledger = (
            stage.dynamodb.describe_table(TableName=name)["Table"] for name in self._names.values()
        )
        self._items = mailbox.get("ItemCount", 0) + ledger.get("ItemCount", 0)
        ttl = stage.dispatch.ledger_ttl_seconds
        self._memory = Memory.of(mailbox, ledger, ttl, stage.clock(), vouched=vouched)

    def scan(self, progress: Callable[[int, int], None] = lambda _seen, _items: None) -> Candidates:
        """Find what is missing from the ledger or overdue in it. `progress` takes how many items were read,
        and of about how many."""
        candidates = Candidates([], {"mailbox": 0, "ledger": 0})
        for table in self._names:
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
        vouched, messages = 0, []
        for finding, message in (each for batch in self._judged(candidates) for each in batch):
            id_, event_type = message.key.id, message.key.event_type
            counts.setdefault(finding.state, Counter())[event_type] += 1
            vouched += finding.vouched
            if candidates.named:
                messages.append(NamedMessage(id_, event_type, finding.state, finding.vouched))
        messages += [NamedMessage(key.id, key.event_type, "unknown") for key in candidates.unknown]
        counts.pop("moving", None)
        return Reconciled(
            stage=self._stage.stage,
            dry_run=dry_run,
            older_than_seconds=round(self._stale_after.older_than),
            looked_at=candidates.looked_at,
            found={state: dict(sorted(counts[state].items())) for state in sorted(counts)},
            vouched=vouched,
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
            TableName=self._names[table], Segment=segment, TotalSegments=SEGMENTS, **asked
        )
        items = {key_of(each): plain(each) for each in reply["Items"]}
        if table == "mailbox":
            known = self._stage.read(self._names["ledger"], items)
            keys = [key for key in items if key not in known]
        else:
            keys = [key for key, item in items.items() if is_overdue(item, now, self._stale_after)]
        return (reply["ScannedCount"], keys), reply.get("LastEvaluatedKey")

    def _channels(self, ref: MessageRef) -> set[str]:
        """The channels that have a message of that id."""
        items = (each for table in self._names.values() for each in self._stage.items(table, ref))
        return {each["event_type"] for each in items}

    def _judged(self, candidates: Candidates) -> Iterator[list[tuple[Finding, StoredMessage]]]:
        """The candidates with their states, as many at once as are read together."""
        may_hold = DeadLetterQueues(self._stage).may_hold
        for part in parts(candidates.keys, TOGETHER):
            ledger = self._stage.read(self._names["ledger"], part)
            mailbox = self._stage.read(self._names["mailbox"], part)
            now = self._stage.clock()
            messages = [StoredMessage(key, ledger.get(key), mailbox.get(key)) for key in part]
            yield [(judge(each, now, self._stale_after, self._memory, may_hold), each) for each in messages]
