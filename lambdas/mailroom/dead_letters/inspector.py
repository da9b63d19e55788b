"""Inspection of a stage's dead-letter queues, by a schedule and when an alarm begins. Dead letters stay in
their queues."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.aws import clients
from mailroom.clock import iso
from mailroom.dead_letters.cause import ExplainedDeadLetter, explain
from mailroom.dead_letters.queue import LONG_POLL_SECONDS, DeadLetterQueue
from mailroom.environment import DEAD_LETTERS_KEPT_BACK_SECONDS, DeadLettersSettings
from mailroom.errors import Unfinished
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Key
from mailroom.telemetry import count, logger, working_on

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

PUT_BACK_SECONDS = 0.003
"""Seconds of the function's time that are reserved for each received dead letter, to make it visible again at
the end: a tenth of the time of a call, which handles ten."""


class DeadLetterInspector(Struct, frozen=True):
    """Marks the messages of dead letters in the ledger, and logs the causes, with one line for each cause and
    queue.

    The marks in the ledger show which messages were handled before. So a pass does not need other stored
    state, and if dead letters stay in their queues for days, later passes only read.
    """

    urls: Mapping[str, str]
    """URLs of the dead-letter queues by short name, such as mail-dlq."""
    ledger: Ledger
    sqs: "SQSClient"
    long_poll: int

    @classmethod
    def of(cls, settings: DeadLettersSettings) -> "DeadLetterInspector":
        """Build the inspector from the settings of the function."""
        return cls(
            settings.dead_letter_queues,
            Ledger.of(settings),
            clients.sqs(),
            LONG_POLL_SECONDS,
        )

    def handle(self, remaining: Callable[[], int]) -> dict[str, int]:
        """Inspect all dead-letter queues. Returns the number of received dead letters by queue. `remaining`
        is Lambda's `get_remaining_time_in_millis`.

        Raises Unfinished at the end if some dead letters could not be inspected or marked.
        """
        counts = {}
        failed = 0
        for place, (name, url) in enumerate(self.urls.items()):
            queue = DeadLetterQueue(self.sqs, name, url, self.long_poll)
            # Each queue gets a share of the time, so that a long queue does not use up the time of the
            # others.
            share = (remaining() / 1000 - DEAD_LETTERS_KEPT_BACK_SECONDS) / (len(self.urls) - place)
            failed += self._look_through(queue, remaining() / 1000 - share, remaining)
            counts[name] = queue.seen
        if failed:
            count("DeadLettersNotLookedAt", failed)
            raise Unfinished(f"{failed} inspections of dead letters failed; see the previous log lines")
        return counts

    def _look_through(self, queue: DeadLetterQueue, end: float, remaining: Callable[[], int]) -> int:
        """Inspect a queue until the function has `end` seconds left. Then make its dead letters visible
        again. Returns the number of failures."""
        failed = 0
        examples: dict[str, ExplainedDeadLetter] = {}
        counts = Counter[str]()

        def in_time() -> bool:
            return remaining() / 1000 - queue.seen * PUT_BACK_SECONDS > end

        try:
            for explained in self._explained(queue, in_time, remaining):
                examples.setdefault(explained.cause.code, explained)
                counts[explained.cause.code] += 1
                if (key := _to_mark(explained)) is not None:
                    # Only the marks take long, so the time is checked before each of them. Dead letters whose
                    # message is already marked are skipped quickly, so that a pass reaches the new ones.
                    if not in_time():
                        break
                    failed += not self._mark(key, explained.dead_letter.message_id)
        except Exception:  # noqa: BLE001 - logged and counted; the other queues are looked through
            logger.exception("a dead-letter queue was not inspected", queue=queue.name)
            failed += 1
        finally:
            queue.put_back()
        for code, example in examples.items():
            _log(example, counts[code])
        if not queue.ended:
            logger.warning("dead letters left for the next pass", queue=queue.name, seen=queue.seen)
        return failed

    def _explained(
        self, queue: DeadLetterQueue, in_time: Callable[[], bool], remaining: Callable[[], int]
    ) -> Iterator[ExplainedDeadLetter]:
        """Receive and yield dead letters with their explanations. An error of the ledger is raised, so that
        it ends the inspection of the queue, and the next pass receives the dead letters again."""
        while in_time() and not queue.full and (dead_letters := queue.receive(remaining() / 1000)):
            yield from explain(self.ledger.items, dead_letters)

    def _mark(self, key: Key, message_id: str) -> bool:
        """Mark the message of a dead letter in the ledger. Returns False after an error, which is logged."""
        working_on(key)
        try:
            self.ledger.dead_lettered(key)
        except Exception:  # noqa: BLE001 - logged, and counted by the caller
            logger.exception("dead letter not marked", message_id=message_id)
            return False
        finally:
            working_on(None)
        return True


def _to_mark(explained: ExplainedDeadLetter) -> Key | None:
    """Return the key of the message that needs a mark, or None.

    The message of a callback or an event is not marked, because the dead letter does not prove that the
    message was not sent, and a redrive would not remove the mark.
    """
    item = explained.item
    ended_or_marked = "completedAt" in item or "dead_lettered_at" in item
    needed = explained.subject.kind == "message" and item and not ended_or_marked
    return explained.subject.key if needed else None


def _log(example: ExplainedDeadLetter, letters: int) -> None:
    """Log the number of a queue's dead letters with the same cause, together with one example."""
    working_on(example.subject.key)
    logger.error(
        "dead letters",
        queue=example.dead_letter.queue,
        letters=letters,
        cause={"code": example.cause.code, "message": example.cause.message},
        receives=example.dead_letter.receives,
        message_id=example.dead_letter.message_id,
        sent_at=iso(example.dead_letter.sent_at / 1000),
    )
    working_on(None)
