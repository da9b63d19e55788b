"""One run of `reconcile`: find candidates, look at each of them a second time, and requeue what is stuck."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from msgspec import Struct, structs

from mailroom.aws.dynamo import plain
from mailroom.message.message import Key
from ops.reconcile.answer import NamedMessage, Reconciled, Table
from ops.reconcile.states import (
    JUDGED_BY,
    DeadLetterQueues,
    Finding,
    Memory,
    StaleAfter,
    State,
    described,
    is_overdue,
    judge,
)
from ops.requeue.requeuer import Requeuer, Stuck
from ops.requeue.selection import MessageRef
from ops.requeue.stage import DeployedStage, Image, key_of, parts, projected
from ops.screen import Refused
from ops.stage import depth

TOGETHER = 100
"""Messages that are read and requeued at once: of 400 KB each, at most."""
MOST_SEGMENTS = 8
_SEGMENT_ITEMS = 50_000
"""A smaller table is not worth a second segment."""
_WORKERS = 8
_MISSING_BY = ("id",)


Judged = tuple[Finding, Key, Image | None, Image | None]
"""The state of a message, and its items of the ledger and of the mailbox."""


class Candidates(Struct):
    """Messages that may be stuck. `looked_at`: items that were scanned, by table. `missing_at`: when the
    mailbox was scanned (epoch seconds), if some of it is unknown to the ledger. `named`: an operator named
    them; `unknown`: named, and in neither table; "" is the channel where none was given."""

    keys: list[Key]
    looked_at: dict[Table, int]
    missing_at: float | None = None
    named: bool = False
    unknown: Sequence[Key] = ()


def _ignore(_more: float) -> None:
    """For those who show no progress."""


class Reconciler:
    """Works for one stage. `vouched`: the operator's word stands for what the ledger may have forgotten.

    `advance` is told how many more items or messages are done.
    """

    def __init__(self, stage: DeployedStage, stale_after: StaleAfter, *, vouched: bool) -> None:
        self._stage = stage
        self._stale_after = stale_after
        self._names: dict[Table, str] = {
            "mailbox": stage.mailbox_table,
            "ledger": stage.ledger_table,
        }
        mailbox, ledger = (described(stage.dynamodb, name) for name in self._names.values())
        self._items: dict[Table, int] = {"mailbox": mailbox.items, "ledger": ledger.items}
        ttl = stage.dispatch.ledger_ttl_seconds
        self._memory = Memory.of(mailbox, ledger, ttl, stage.clock(), vouched=vouched)

    @property
    def items(self) -> int:
        """About how many items a scan reads."""
        return sum(self._items.values())

    def scan(self, advance: Callable[[float], None] = _ignore) -> Candidates:
        """Find what is missing from the ledger or overdue in it. A scan that is cut off starts again."""
        candidates = Candidates([], {})
        for table in self._names:
            seen = 0
            for count, keys in self._pages(table):
                seen += count
                candidates.keys += keys
                advance(count)
            candidates.looked_at[table] = seen
            if table == "mailbox" and candidates.keys:
                candidates.missing_at = self._stage.clock()
        return candidates

    def second_look_in(self, candidates: Candidates) -> float:
        """Seconds until what was missing counts as lost: what is merely on its way shows up until then."""
        if candidates.missing_at is None:
            return 0
        return candidates.missing_at + self._stale_after.older_than - self._stage.clock()

    def named(self, refs: Sequence[MessageRef], advance: Callable[[float], None] = _ignore) -> Candidates:
        """The messages that an operator names. Raises Refused where several have an id."""
        found: dict[Key, bool] = {}
        with ThreadPoolExecutor(_WORKERS) as pool:
            for each, channels in zip(refs, pool.map(self._channels, refs), strict=True):
                if len(channels) > 1:
                    raise Refused(
                        f"{each.id}: there are messages of {' and '.join(sorted(channels))} with that id; "
                        "say which by --channel."
                    )
                found[Key(each.id, next(iter(channels), each.event_type or ""))] = bool(channels)
                advance(1)
        return Candidates(
            [key for key, there in found.items() if there],
            {"mailbox": 0, "ledger": 0},
            named=True,
            unknown=[key for key, there in found.items() if not there],
        )

    def evaluate(
        self, candidates: Candidates, *, dry_run: bool, advance: Callable[[float], None] = _ignore
    ) -> Reconciled:
        """The state of each candidate now. Nothing is requeued."""
        counts: dict[State, Counter[str]] = {}
        vouched, messages = 0, []
        judged = (each for batch in self._judged(candidates.keys, _MISSING_BY) for each in batch)
        for finding, key, _, _ in judged:
            counts.setdefault(finding.state, Counter())[key.event_type] += 1
            vouched += finding.vouched
            if candidates.named:
                messages.append(NamedMessage(key.id, key.event_type, finding.state, finding.vouched))
            advance(1)
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

    def requeue(
        self, candidates: Candidates, answer: Reconciled, advance: Callable[[float], None] = _ignore
    ) -> Reconciled:
        """Requeue the candidates that are still stuck, judged anew; the answer with their number."""
        requeuer = Requeuer(self._stage)
        counts: Counter[str] = Counter()
        failed = 0
        for batch in self._judged(candidates.keys):
            done, left = requeuer.requeue(
                [
                    Stuck(key, finding.route, ledger, mailbox)
                    for finding, key, ledger, mailbox in batch
                    if finding.route is not None
                ]
            )
            counts += done
            failed += left
            advance(done.total() + left)
        return structs.replace(answer, put_back=dict(sorted(counts.items())), failed=failed)

    def _pages(self, table: Table) -> Iterator[tuple[int, list[Key]]]:
        """The pages of a table, several segments at once: how many items each has, and its candidates."""
        segments = segments_of(self._items[table])
        starts: dict[int, Any] = dict.fromkeys(range(segments))
        page = partial(self._page, table, segments)
        with ThreadPoolExecutor(segments) as pool:
            while starts:
                pages = pool.map(page, starts.keys(), starts.values())
                following = {}
                for segment, (count, keys, last) in zip(starts, pages, strict=True):
                    yield count, keys
                    if last:
                        following[segment] = last
                starts = following

    def _page(self, table: Table, segments: int, segment: int, start: Any) -> tuple[int, list[Key], Any]:
        fields = _MISSING_BY if table == "mailbox" else JUDGED_BY
        asked: dict[str, Any] = projected(fields)
        if table == "ledger":
            asked["FilterExpression"] = "attribute_not_exists(completedAt)"
        if start:
            asked["ExclusiveStartKey"] = start
        now = self._stage.clock()
        reply = self._stage.dynamodb.scan(
            TableName=self._names[table], Segment=segment, TotalSegments=segments, **asked
        )
        items = {key_of(each): plain(each) for each in reply["Items"]}
        if table == "mailbox":
            known = self._stage.images(self._names["ledger"], items, _MISSING_BY)
            keys = [key for key in items if key not in known]
        else:
            keys = [key for key, item in items.items() if is_overdue(item, now, self._stale_after)]
        return reply["ScannedCount"], keys, reply.get("LastEvaluatedKey")

    def _channels(self, ref: MessageRef) -> set[str]:
        """The channels that have a message of that id."""
        return {
            each["event_type"] for table in self._names.values() for each in self._stage.items(table, ref)
        }

    def _judged(self, keys: Sequence[Key], mailbox_fields: Sequence[str] = ()) -> Iterator[list[Judged]]:
        """The state of each, as many at once as are read together. Of the mailbox's items these fields are
        read (none: all)."""
        dead_letters = DeadLetterQueues(self._stage)
        for part in parts(keys, TOGETHER):
            ledger = self._stage.images(self._names["ledger"], part)
            mailbox = self._stage.images(self._names["mailbox"], part, mailbox_fields)
            now = self._stage.clock()
            yield [
                (
                    judge(
                        _item(ledger, key),
                        _item(mailbox, key),
                        now,
                        self._stale_after,
                        self._memory,
                        dead_letters.may_hold,
                    ),
                    key,
                    ledger.get(key),
                    mailbox.get(key),
                )
                for key in part
            ]


def segments_of(items: int) -> int:
    """Into how many segments the scan of a table of so many items is cut."""
    return min(MOST_SEGMENTS, 1 + items // _SEGMENT_ITEMS)


def _item(images: Mapping[Key, Image], key: Key) -> dict[str, object] | None:
    return plain(images[key]) if key in images else None
