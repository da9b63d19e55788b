"""Passes over a stage's dead-letter queues, when an alarm begins and by a schedule. Every letter stays."""

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
"""A dead letter's share of the call that makes ten visible again: this time is reserved for each held one."""


class DeadLetterInspector(Struct, frozen=True):
    """Marks the messages of dead letters in the ledger, and logs the causes: a line for each cause and queue.

    The mark in the ledger itself shows which messages are done, so a pass needs no memory, and only reads if
    the dead letters of an outage lie for days.
    """

    urls: Mapping[str, str]
    """URLs of the dead-letter queues by short name, such as mail-dlq."""
    ledger: Ledger
    sqs: "SQSClient"
    long_poll: int

    @classmethod
    def of(cls, settings: DeadLettersSettings) -> "DeadLetterInspector":
        """Make the inspector of a function with these settings."""
        return cls(
            settings.dead_letter_queues,
            Ledger.of(settings),
            clients.sqs(),
            LONG_POLL_SECONDS,
        )

    def handle(self, remaining: Callable[[], int]) -> dict[str, int]:
        """Look through all queues, whatever event has started the pass. Returns the number of dead letters
        seen, by queue. `remaining` is Lambda's `get_remaining_time_in_millis`.

        Raises Unfinished after all else is done, if some dead letters could not be examined.
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
            raise Unfinished(f"{failed} looks at dead letters failed; the lines before say why")
        return counts

    def _look_through(self, queue: DeadLetterQueue, end: float, remaining: Callable[[], int]) -> int:
        """Examine a queue until the function has `end` seconds left, then make its dead letters visible.
        Returns the number of failures."""
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
                    # Of the received letters only marks take long, so the time is checked before each mark. A
                    # pass quickly skips letters that have one, and reaches the new ones behind them.
                    if not in_time():
                        break
                    failed += not self._mark(key, explained.dead_letter.message_id)
        except Exception:  # noqa: BLE001 - logged and counted; the other queues are looked through
            logger.exception("dead-letter queue not looked through", queue=queue.name)
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
        """Yield dead letters as they were received. A failed read of the ledger ends the queue's pass:
        the letters become visible again, and the next pass receives them."""
        while in_time() and not queue.full and (dead_letters := queue.receive(remaining() / 1000)):
            yield from explain(self.ledger.items, dead_letters)

    def _mark(self, key: Key, message_id: str) -> bool:
        """Mark the message of a dead letter. Returns False for a failure, which delays no other letter."""
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

    A callback or an event leaves its message unmarked: it does not prove that the message failed, and its
    redrive would not remove the mark.
    """
    item = explained.item
    ended_or_marked = "completedAt" in item or "dead_lettered_at" in item
    needed = explained.subject.kind == "message" and item and not ended_or_marked
    return explained.subject.key if needed else None


def _log(example: ExplainedDeadLetter, letters: int) -> None:
    """Log the number of a queue's dead letters with the same cause, and one of them."""
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
