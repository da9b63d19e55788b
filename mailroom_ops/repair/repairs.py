"""Finds messages that may be stuck, diagnoses each, and applies the cures."""

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
from mailroom_ops.shared.deeds import thing_of
from mailroom_ops.shared.refusals import Refused
from mailroom_ops.shared.selected_messages import MessageRef
from mailroom_ops.shared.stage_queues import DeployedStage, StoredMessage, Table
from mailroom_ops.shared.tables import Position, key_of, parts, segments

TOGETHER = 100
"""Number of messages that are read and requeued together. Each may have 400 KB."""
SEGMENTS = 8
"""Number of segments of a table that are scanned in parallel."""
_WORKERS = 8
_TABLES: tuple[Table, ...] = get_args(Table)
Word = Literal["sent", "failed"]
Judged = tuple[Diagnosis, StoredMessage]


class Repaired(Struct, frozen=True, kw_only=True):
    """Output of `messages resend --stuck`. `looked_at` is the number of scanned items by table. `found` is
    the number of messages by state and channel before the repair, without messages that are fine. `ready` is
    the number of messages with a cure that the run applies, and `may_go_twice` the number of these that the
    ledger may have forgotten. `repaired` is the number of repaired messages by channel, and `failed` the
    number of messages whose repair failed."""

    stage: str
    dry_run: bool
    looked_at: dict[Table, int]
    found: dict[State, dict[str, int]]
    ready: int
    may_go_twice: int
    repaired: dict[str, int] = {}
    failed: int = 0

    @property
    def incomplete(self) -> bool:
        """Whether messages remain that are stuck, or may be stuck."""
        total = sum(count for counts in self.found.values() for count in counts.values())
        return bool(self.failed or total > (0 if self.dry_run else sum(self.repaired.values())))


class Candidates(Struct):
    """Messages that a scan found, and that may be stuck. `looked_at` is the number of scanned items by table.
    `missing_at` is the time in epoch seconds at which the mailbox was scanned, or None if all its messages
    have ledger items."""

    keys: list[Key]
    looked_at: dict[Table, int]
    missing_at: float | None = None


class Repairs:
    """Finds, diagnoses and repairs messages of one stage."""

    def __init__(self, stage: DeployedStage, judge: Judge) -> None:
        self._stage = stage
        self._judge = judge

    @classmethod
    def of(
        cls, stage: DeployedStage, *, older_than: float | None = None, confirmed: bool = False
    ) -> "Repairs":
        """Return the repairs of a deployed stage. `confirmed` is true if an operator has confirmed that
        messages which the ledger may have forgotten were never sent."""
        mailbox, ledger = (
            stage.dynamodb.describe_table(TableName=stage.name(table))["Table"] for table in _TABLES
        )
        memory = Memory.of(mailbox, ledger, stage.clock(), confirmed=confirmed)
        return cls(stage, Judge(memory, older_than))

    def scan(self, progress: Callable[[int], None] = lambda _seen: None) -> Candidates:
        """Scan both tables for messages that are missing from the ledger or overdue in it. `progress` is
        called with the number of items that were read so far."""
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
        """Return the seconds after which messages that are still missing from the ledger count as lost: a
        message that is on its way gets its ledger item within this time."""
        if candidates.missing_at is None:
            return 0.0
        return max(0.0, candidates.missing_at + self._judge.patience - self._stage.clock())

    def keys_of(self, refs: Sequence[MessageRef]) -> list[Key]:
        """Return the keys of the messages that an operator names; the channel is empty if neither table has
        the message. Raises Refused if messages of several channels have an id."""
        keys = []
        with ThreadPoolExecutor(_WORKERS) as pool:
            for ref, channels in zip(refs, pool.map(self._channels, refs), strict=True):
                if len(channels) > 1:
                    names = " and ".join(sorted(channels))
                    raise Refused(f"{ref.id}: {names} have messages with that id; choose one with --channel.")
                keys.append(Key(ref.id, next(iter(channels), ref.event_type or "")))
        return list(dict.fromkeys(keys))

    def judged(self, keys: Sequence[Key]) -> Iterator[list[Judged]]:
        """Yield lists of messages with their diagnoses; each list has the messages that were read
        together."""
        for part in parts(keys, TOGETHER):
            full_keys = [key for key in part if key.event_type]
            ledger = self._stage.read("ledger", full_keys)
            mailbox = self._stage.read("mailbox", full_keys)
            now_s = self._stage.clock()
            messages = [StoredMessage(key, ledger.get(key), mailbox.get(key)) for key in part]
            yield [(self._judge.judge(message, now_s), message) for message in messages]

    def look(self, candidates: Candidates, *, dry_run: bool) -> Repaired:
        """Diagnose each candidate, without changing anything, and return the numbers of messages by state."""
        counts: dict[State, Counter[str]] = {}
        ready, twice = 0, 0
        for diagnosis, message in (pair for batch in self.judged(candidates.keys) for pair in batch):
            counts.setdefault(diagnosis.state, Counter())[message.key.event_type] += 1
            ready += self.cure_of(diagnosis, by_id=False) is not None
            twice += diagnosis.twice
        counts.pop("fine", None)
        return Repaired(
            stage=self._stage.stage,
            dry_run=dry_run,
            looked_at=candidates.looked_at,
            found={state: dict(sorted(counts[state].items())) for state in sorted(counts)},
            ready=ready,
            may_go_twice=twice,
        )

    def repair(self, candidates: Candidates, answer: Repaired) -> Repaired:
        """Diagnose the candidates again, and cure them. Return the answer with the numbers of repaired
        messages."""
        repaired: Counter[str] = Counter()
        failed = 0
        for batch in self.judged(candidates.keys):
            done, unqueued = self.cure(batch, by_id=False)
            repaired += Counter(key.event_type for key in done)
            failed += len(unqueued)
        return structs.replace(answer, repaired=dict(sorted(repaired.items())), failed=failed)

    def cure(self, batch: Sequence[Judged], reason: str = "", *, by_id: bool) -> tuple[set[Key], set[Key]]:
        """Requeue the messages of a batch that are stuck and, if an operator named them, move their dead
        letters back. Return the keys of the messages that are queued now, and of those that are not although
        they have a cure."""
        cures = {message.key: self.cure_of(diagnosis, by_id=by_id) for diagnosis, message in batch}
        keys = {key for key, cure in cures.items() if cure}
        self._stage.deeds.record("put back", map(thing_of, keys), reason)
        redriven = self._redriven({key for key in keys if cures[key] == "redrive"})
        # A message whose dead letter is no longer in a dead-letter queue is requeued.
        remaining = [pair for pair in batch if pair[1].key in keys - redriven]
        requeuer = Requeuer(self._stage)
        unqueued = requeuer.requeue((diagnosis.route, message) for diagnosis, message in remaining)
        return keys - unqueued, unqueued

    def end(self, candidate: Judged, word: Word, reason: str = "") -> str:
        """Record the outcome that an operator states for a message, unless the message has changed since it
        was diagnosed. Return why the outcome was not recorded, or an empty text if it was."""
        diagnosis, message = candidate
        if "end" not in diagnosis.cures or message.ledger is None:
            return diagnosis.not_ended
        self._stage.deeds.record(f"record as {word}", [thing_of(message.key)], reason)
        token = token_hex(16)
        free_since = self._judge.free_since(message.key.event_type, self._stage.clock())
        ledger = self._stage.ledger(lambda: token)
        settled = ledger.settle(message.key, message.ledger, word, free_since)
        if settled or self._stage.written(message.key, token) is not None:
            return ""
        return "it has changed since it was shown; run this again"

    @staticmethod
    def cure_of(diagnosis: Diagnosis, *, by_id: bool) -> Cure | None:
        """Return the cure that a run applies to a message, or None. No run records an outcome by itself, and
        only the dead letters of messages that an operator named are moved, because their cause has to be
        fixed first."""
        first = next(iter(diagnosis.cures), None)
        return None if first == "end" or (first == "redrive" and not by_id) else first

    def _redriven(self, keys: set[Key]) -> set[Key]:
        """Move the dead letters of these messages back into their queues. Return the keys of the messages
        whose dead letters were moved."""
        channels = {key.event_type for key in keys}
        moved_keys: set[Key] = set()
        for queue in dead_queues(self._stage.sqs, self._stage.stage) if keys else ():
            if any(queue.holds(channel) for channel in channels):
                mover = DeadLetterMover(self._stage.sqs, queue)
                sum(mover.move(None, keys))
                moved_keys |= {key for key in keys if key in mover.moved}
        return moved_keys

    def _page(self, table: Table, position: Position) -> tuple[tuple[int, list[Key]], Any]:
        """Read a page of a table. Return the number of its items with the keys of its candidates, and its
        LastEvaluatedKey."""
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
        """Return the channels that have a message with this id."""
        items = (item for table in _TABLES for item in self._stage.items(table, ref))
        return {item["event_type"] for item in items}
