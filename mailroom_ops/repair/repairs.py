"""A run of `repair`: find messages that may have stopped, judge each, and apply the cures."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from secrets import token_hex
from typing import Any, Literal, get_args

from msgspec import Struct, structs

from mailroom.aws.dynamo_values import plain
from mailroom.message.message import Key
from mailroom_ops.repair.dead_letter_queues import dead_queues
from mailroom_ops.repair.judge import JUDGED_BY, Cure, Diagnosis, Judge, Memory, State
from mailroom_ops.repair.redrive import DeadLetterMover
from mailroom_ops.repair.requeuer import Requeuer
from mailroom_ops.shared.screen import Refused
from mailroom_ops.shared.selected_messages import MessageRef
from mailroom_ops.shared.stage_queues import DeployedStage, StoredMessage, Table
from mailroom_ops.shared.tables import Position, key_of, parts, segments

TOGETHER = 100
"""Messages that are read and requeued at once: of 400 KB each, at most."""
SEGMENTS = 8
"""Segments of a table, read side by side."""
_WORKERS = 8
_TABLES: tuple[Table, ...] = get_args(Table)
Word = Literal["sent", "failed"]
Judged = tuple[Diagnosis, StoredMessage]


class NamedMessage(Struct, frozen=True):
    """Result for a message that was named. `state` and `cures` are those from before."""

    id: str
    event_type: str
    state: State
    cures: tuple[Cure, ...]
    done: Cure | None = None
    """Cure that was applied, if any."""
    why: str = ""
    """Reason for which an operator could not end the message."""


class Repaired(Struct, frozen=True, kw_only=True):
    """Answer of `repair ID…` and `repair --scan`. `looked_at`: items that were scanned, by table. `found`:
    messages by state and channel, as they stood before; those that are fine are left out. `ready`: how many
    have a cure that the run applies; `may_go_twice`: how many of these the ledger may have forgotten.
    `messages`: each message that was named; empty after a scan. `repaired`: by channel; `failed`: how many
    should have been, and could not be."""

    stage: str
    dry_run: bool
    looked_at: dict[Table, int]
    found: dict[State, dict[str, int]]
    ready: int
    may_go_twice: int
    messages: list[NamedMessage]
    repaired: dict[str, int] = {}
    failed: int = 0

    @property
    def incomplete(self) -> bool:
        """Whether a message is left that should be on its way and is not, or may not be."""
        total = sum(count for counts in self.found.values() for count in counts.values())
        return bool(self.failed or total > (0 if self.dry_run else sum(self.repaired.values())))


class Candidates(Struct):
    """Messages that may have stopped. `looked_at`: items that were scanned, by table. `missing_at`: when the
    mailbox was scanned (epoch seconds), if some of it is unknown to the ledger. `named`: an operator named
    them; the channel of a message that neither table has may be ""."""

    keys: list[Key]
    looked_at: dict[Table, int]
    missing_at: float | None = None
    named: bool = False


class Repairs:
    """Repairs of messages of one stage."""

    def __init__(self, stage: DeployedStage, judge: Judge) -> None:
        self._stage = stage
        self._judge = judge

    @classmethod
    def of(
        cls, stage: DeployedStage, *, older_than: float | None = None, confirmed: bool = False
    ) -> "Repairs":
        """Of a deployed stage. `confirmed`: an operator has confirmed that messages which the ledger may have
        forgotten were never sent."""
        mailbox, ledger = (
            stage.dynamodb.describe_table(TableName=stage.name(table))["Table"] for table in _TABLES
        )
        ttl = stage.dispatch.ledger_ttl_seconds
        memory = Memory.of(mailbox, ledger, ttl, stage.clock(), confirmed=confirmed)
        return cls(stage, Judge(memory, older_than))

    def scan(self, progress: Callable[[int], None] = lambda _seen: None) -> Candidates:
        """Find what is missing from the ledger or overdue in it. `progress` takes how many items were
        read."""
        candidates = Candidates([], {"mailbox": 0, "ledger": 0})
        for table in _TABLES:
            for count, keys in segments(SEGMENTS, partial(self._page, table)):
                candidates.looked_at[table] += count
                candidates.keys += keys
                progress(sum(candidates.looked_at.values()))
            if table == "mailbox" and candidates.keys:
                candidates.missing_at = self._stage.clock()
        return candidates

    def second_look_in(self, candidates: Candidates) -> float:
        """Seconds until what was missing counts as lost: what is merely on its way shows up until then."""
        if candidates.missing_at is None:
            return 0.0
        return max(0.0, candidates.missing_at + self._judge.patience - self._stage.clock())

    def named(self, refs: Sequence[MessageRef]) -> Candidates:
        """The messages that an operator names. Raises Refused if several have an id."""
        keys = []
        with ThreadPoolExecutor(_WORKERS) as pool:
            for ref, channels in zip(refs, pool.map(self._channels, refs), strict=True):
                if len(channels) > 1:
                    names = " and ".join(sorted(channels))
                    raise Refused(f"{ref.id}: {names} have messages with that id; choose one with --channel.")
                keys.append(Key(ref.id, next(iter(channels), ref.event_type or "")))
        return Candidates(list(dict.fromkeys(keys)), {"mailbox": 0, "ledger": 0}, named=True)

    def judged(self, candidates: Candidates) -> Iterator[list[Judged]]:
        """The candidates with what is the matter with them, as many at once as are read together."""
        for part in parts(candidates.keys, TOGETHER):
            full_keys = [key for key in part if key.event_type]
            ledger = self._stage.read("ledger", full_keys)
            mailbox = self._stage.read("mailbox", full_keys)
            now_s = self._stage.clock()
            messages = [StoredMessage(key, ledger.get(key), mailbox.get(key)) for key in part]
            yield [(self._judge.judge(message, now_s), message) for message in messages]

    def look(self, candidates: Candidates, *, dry_run: bool) -> Repaired:
        """Judge each candidate as of now, without changing anything."""
        counts: dict[State, Counter[str]] = {}
        messages, ready, twice = [], 0, 0
        for diagnosis, message in (pair for batch in self.judged(candidates) for pair in batch):
            id_, event_type = message.key.id, message.key.event_type
            counts.setdefault(diagnosis.state, Counter())[event_type] += 1
            ready += self._cure(diagnosis, candidates) is not None
            twice += diagnosis.twice
            if candidates.named:
                messages.append(NamedMessage(id_, event_type, diagnosis.state, diagnosis.cures))
        counts.pop("fine", None)
        return Repaired(
            stage=self._stage.stage,
            dry_run=dry_run,
            looked_at=candidates.looked_at,
            found={state: dict(sorted(counts[state].items())) for state in sorted(counts)},
            ready=ready,
            may_go_twice=twice,
            messages=messages,
        )

    def repair(self, candidates: Candidates, answer: Repaired) -> Repaired:
        """Requeue the candidates that have stopped, and redrive the dead letters of those that were named,
        judged anew; the answer with how many that were."""
        requeuer = Requeuer(self._stage)
        repaired: Counter[str] = Counter()
        failed = 0
        for batch in self.judged(candidates):
            cures = {message.key: self._cure(diagnosis, candidates) for diagnosis, message in batch}
            redriven = self._redriven({key for key, cure in cures.items() if cure == "redrive"})
            repaired += Counter(key.event_type for key in redriven)
            # A message whose dead letter is gone from the queues is requeued.
            remaining = [pair for pair in batch if cures[pair[1].key] and pair[1].key not in redriven]
            done, unqueued = requeuer.requeue((diagnosis.route, message) for diagnosis, message in remaining)
            repaired += done
            failed += unqueued
        return structs.replace(answer, repaired=dict(sorted(repaired.items())), failed=failed)

    def end(self, candidate: Judged, word: Word) -> str:
        """End a message by an operator's word, unless it has changed since it was judged. Return the reason
        if the message was not ended, or an empty text if it was."""
        diagnosis, message = candidate
        if "end" not in diagnosis.cures or message.ledger is None:
            return diagnosis.not_ended
        token = token_hex(16)
        free_since = self._judge.free_since(message.key.event_type, self._stage.clock())
        ledger = self._stage.ledger(lambda: token)
        settled = ledger.settle(message.key, message.ledger, word, free_since)
        if settled or self._stage.written(message.key, token) is not None:
            return ""
        return "it has changed since it was shown; run this again"

    @staticmethod
    def _cure(diagnosis: Diagnosis, candidates: Candidates) -> Cure | None:
        """Return the cure that a run applies by itself, if any. A scan does not move dead letters: their
        cause has to be fixed first."""
        first = next(iter(diagnosis.cures), None)
        return None if first == "end" or (first == "redrive" and not candidates.named) else first

    def _redriven(self, keys: set[Key]) -> set[Key]:
        """Move the dead letters of these messages back; the messages whose dead letters were found."""
        channels = {key.event_type for key in keys}
        moved_keys: set[Key] = set()
        for queue in dead_queues(self._stage.sqs, self._stage.stage) if keys else ():
            if any(queue.holds(channel) for channel in channels):
                mover = DeadLetterMover(self._stage.sqs, queue)
                sum(mover.move(None, keys))
                moved_keys |= {key for key in keys if key in mover.moved}
        return moved_keys

    def _page(self, table: Table, position: Position) -> tuple[tuple[int, list[Key]], Any]:
        """Read a page of a table: how many items it has, and its candidates; and its LastEvaluatedKey."""
        fields = ("id", "event_type", *(JUDGED_BY if table == "ledger" else ()))
        names = {f"#f{index}": name for index, name in enumerate(fields)}
        query: Any = {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
        if table == "ledger":
            query["FilterExpression"] = "attribute_not_exists(completedAt)"
        moment = self._stage.clock()
        reply = self._stage.dynamodb.scan(TableName=self._stage.name(table), **query, **position)
        items = {key_of(image): plain(image) for image in reply["Items"]}
        if table == "mailbox":
            stored = self._stage.read("ledger", items)
            keys = [key for key in items if key not in stored]
        else:
            keys = [key for key, item in items.items() if self._judge.overdue(item, moment)]
        return (reply["ScannedCount"], keys), reply.get("LastEvaluatedKey")

    def _channels(self, ref: MessageRef) -> set[str]:
        """The channels that have a message of that id."""
        items = (item for table in _TABLES for item in self._stage.items(table, ref))
        return {item["event_type"] for item in items}
