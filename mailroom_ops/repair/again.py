"""Sends the messages that an operator names again, in whatever state each is."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from msgspec import structs

from mailroom.message.message import Key
from mailroom_ops.messages.sets import WORKERS, MessageResult
from mailroom_ops.repair.judge import SENTENCES, Diagnosis
from mailroom_ops.repair.repairs import Judged, Repairs
from mailroom_ops.repair.resender import Resender
from mailroom_ops.shared.selected_messages import MessageRef
from mailroom_ops.shared.stage_queues import DeployedStage, awaits_queuing

_UNQUEUED = "its queue or function did not accept it: run this again"


class SendAgain:
    """Act that sends messages again: a message with an outcome is reopened, one that is stuck is put back
    into its queue, and so is the dead letter of a message."""

    def __init__(self, stage: DeployedStage, resender: Resender, repairs: Callable[[], Repairs]) -> None:
        """`repairs` is called only for messages without an outcome, because it needs further permissions."""
        self._stage = stage
        self._resender = resender
        self._repairs = cache(repairs)

    def evaluate(self, refs: Iterable[MessageRef]) -> list[MessageResult]:
        """Return the state of each message and whether it can be sent again, without a change."""
        with ThreadPoolExecutor(WORKERS) as pool:
            pairs = [*pool.map(self._look, refs)]
        keys = {key for _, key in pairs if key}
        diagnoses = {
            message.key: diagnosis for batch in self._judged([*keys]) for diagnosis, message in batch
        }
        return [_result(result, key, diagnoses[key]) if key else result for result, key in pairs]

    def send(self, ready: Sequence[MessageResult], reason: str = "") -> list[MessageResult]:
        """Send the ready messages again, for a reason or for none. Each is evaluated once more, because it
        may have changed."""
        by_key = {Key(message.id, message.event_type): message for message in ready}
        stuck = [key for key, message in by_key.items() if message.attempt is None]
        failures = [message for message in ready if message.attempt is not None]
        results = self._resender.send(failures, reason) if failures else []
        for batch in self._judged(stuck):
            done, unqueued = self._repairs().cure(batch, reason, by_id=True)
            for _, message in batch:
                result = by_key[message.key]
                if message.key in done:
                    results.append(structs.replace(result, result="resent"))
                elif message.key in unqueued:
                    results.append(structs.replace(result, result="unqueued", why=_UNQUEUED))
                else:
                    results.append(result.refused("it has changed since it was shown; run this again"))
        return results

    def _judged(self, keys: list[Key]) -> Iterator[list[Judged]]:
        if keys:
            yield from self._repairs().judged(keys)

    def _look(self, ref: MessageRef) -> tuple[MessageResult, Key | None]:
        """Return a message's result as one with an outcome, and its key if it has none and may be stuck."""
        result, item, _ = self._resender.look(ref)
        if item:
            has_outcome = "completedAt" in item or awaits_queuing(item)
            return result, None if has_outcome else Key(item["id"], item["event_type"])
        if self._stage.items("ledger", ref):  # of several channels
            return result, None
        # Without an item in the ledger, the mailbox tells the channel, if only one has the id.
        items = self._stage.items("mailbox", ref)
        return result, Key(items[0]["id"], items[0]["event_type"]) if len(items) == 1 else None


def _result(result: MessageResult, key: Key, diagnosis: Diagnosis) -> MessageResult:
    """Return the result for a message without an outcome."""
    reason = result.why if diagnosis.state == "fine" else SENTENCES[diagnosis.state]
    if Repairs.cure_of(diagnosis, by_id=True) is None:
        return structs.replace(result, why=reason)
    return MessageResult(
        key.id, key.event_type, result.status, "ready", reason, may_arrive_twice=diagnosis.twice
    )
