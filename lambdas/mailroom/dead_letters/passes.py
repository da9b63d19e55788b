"""Dead letters: looked through where they lie, when an alarm begins and by a schedule. Nothing is deleted."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import clients
from mailroom.aws.dynamo_batches import batch_get
from mailroom.aws.dynamo_values import Sets, number, string
from mailroom.clock import Clock, iso, milliseconds
from mailroom.dead_letters.cause import Cause, Subject, cause_of, subject_of
from mailroom.dead_letters.queue import LONG_POLL_SECONDS, DeadLetter, DeadLetterQueue
from mailroom.environment import DEAD_LETTERS_KEPT_BACK_SECONDS, DeadLettersSettings
from mailroom.errors import Unfinished
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Key
from mailroom.telemetry import count, logger, working_on

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_sqs import SQSClient

PUT_BACK_SECONDS = 0.003
"""A dead letter's share of a call that puts ten back: kept as well, for each that is held."""
KEPT_SECONDS = 15 * 86400
"""A dead-letter queue keeps nothing for more than 14 days."""


class DeadLetterLog(Struct, frozen=True):
    """The memory of what was logged: each dead letter once, over all passes and cold starts.

    One item a dead letter, by its SQS message id. A redriven one has a new id, and is logged anew if it dies
    again (SQS developer guide, "dead-letter queue redrive").
    """

    client: "DynamoDBClient"
    table: str
    clock: Clock

    def unknown(self, dead_letters: Iterable[DeadLetter]) -> list[DeadLetter]:
        """The dead letters that were not logged yet. Raises UnprocessedKeys.

        An outage's dead letters lie for days. Reading what is known costs a fifth of a write that is refused.
        """
        asked = {each.message_id: each for each in dead_letters}
        keys = [{"message_id": string(each)} for each in asked]
        # Consistent: what a pass has just logged must not be logged by the next one.
        for item in batch_get(self.client, {self.table: keys}, consistent=True)[self.table]:
            asked.pop(item["message_id"], None)
        return list(asked.values())

    def remember(self, dead_letter: DeadLetter, key: Key | None, cause: Cause) -> None:
        """Note that it was logged; the first note stays."""
        now = self.clock()
        item: Sets = {
            "message_id": string(dead_letter.message_id),
            "queue": string(dead_letter.queue),
            "cause": {"M": {"code": string(cause.code), "message": string(cause.message)}},
            "receives": number(dead_letter.receives),
            "sent_at": number(dead_letter.sent_at),
            "first_seen": number(milliseconds(now)),
            "ttl": number(now + KEPT_SECONDS),
        }
        if key is not None:
            item |= {"id": string(key.id), "event_type": string(key.event_type)}
        try:
            self.client.put_item(
                TableName=self.table, Item=item, ConditionExpression="attribute_not_exists(message_id)"
            )
        except self.client.exceptions.ConditionalCheckFailedException:
            return  # the SDK asked twice, or another pass was at it too


class DeadLetterInspector(Struct, frozen=True):
    """Looks through a stage's dead-letter queues. `urls` has them by short name, such as mail-dlq.

    Of each letter that is new it marks the ledger's item, writes the log line, and remembers that the line
    was written, in this order. A process that dies before the last does all of it again: a line may come
    twice, and none is lost.
    """

    urls: Mapping[str, str]
    ledger: Ledger
    log: DeadLetterLog
    sqs: "SQSClient"
    long_poll: int

    @classmethod
    def of(cls, settings: DeadLettersSettings, clock: Clock = time.time) -> "DeadLetterInspector":
        """What a function's settings describe."""
        return cls(
            settings.dead_letter_queues,
            ledger=Ledger.of(settings),
            log=DeadLetterLog(clients.dynamodb(), settings.dead_letters_table, clock),
            sqs=clients.sqs(),
            long_poll=LONG_POLL_SECONDS,
        )

    def handle(self, remaining: Callable[[], int]) -> dict[str, Any]:
        """One pass through all queues, whatever began it. `remaining` is Lambda's
        `get_remaining_time_in_millis`. Returns by queue how many dead letters were seen, and how many of them
        were new. Raises Unfinished when all else is done."""
        found = {}
        failed = 0
        for at, (name, url) in enumerate(self.urls.items()):
            queue = DeadLetterQueue(self.sqs, name, url, self.long_poll)
            # One queue of very many dead letters must not keep a pass from the others.
            share = (remaining() / 1000 - DEAD_LETTERS_KEPT_BACK_SECONDS) / (len(self.urls) - at)
            new, not_logged = self._look_through(queue, remaining() / 1000 - share, remaining)
            found[name] = {"seen": queue.seen, "new": new}
            failed += not_logged
        if failed:
            count("DeadLettersNotLookedAt", failed)
            raise Unfinished(f"{failed} looks at dead letters failed; the lines before say why")
        return found

    def _look_through(
        self, queue: DeadLetterQueue, end: float, remaining: Callable[[], int]
    ) -> tuple[int, int]:
        """Log what is new in one queue until the function has `end` seconds left, and put back all that it
        handed out. How many were logged, and how many could not be."""
        new = failed = 0

        def in_time() -> bool:
            return remaining() / 1000 - queue.seen * PUT_BACK_SECONDS > end

        dead_letters = None
        try:
            while dead_letters != [] and in_time() and not queue.full:
                dead_letters = queue.receive(remaining() / 1000)
                for each in self.log.unknown(dead_letters):
                    if not in_time():
                        break
                    logged = self._logged(each)
                    new += logged
                    failed += not logged
        except Exception:  # noqa: BLE001 - logged and counted; the other queues are looked through
            logger.exception("dead-letter queue not looked through", queue=queue.name)
            failed += 1
        finally:
            queue.put_back()
        if new:
            count("DeadLetters", new)
        if not queue.ended:
            logger.warning("dead letters left for the next pass", queue=queue.name, seen=queue.seen)
        return new, failed

    def _logged(self, dead_letter: DeadLetter) -> bool:
        """Whether one was logged; a fault of its own keeps no other of its queue from that."""
        subject = subject_of(dead_letter)
        working_on(subject.key)
        try:
            cause = cause_of(dead_letter, subject, self._item(subject))
            logger.error(
                "dead letter",
                queue=dead_letter.queue,
                cause={"code": cause.code, "message": cause.message},
                receives=dead_letter.receives,
                message_id=dead_letter.message_id,
                sent_at=iso(dead_letter.sent_at / 1000),
            )
            self.log.remember(dead_letter, subject.key, cause)
        except Exception:  # noqa: BLE001 - logged, and counted by the caller
            logger.exception("dead letter not looked at", message_id=dead_letter.message_id)
            return False
        finally:
            working_on(None)
        return True

    def _item(self, subject: Subject) -> dict[str, Any]:
        """What the ledger knows; where the dead letter asks for the message, it is marked on the way."""
        if subject.key is None or subject.kind == "event":
            return {}
        if subject.kind == "callback":
            # The message is not marked: a callback that died says nothing about its message.
            return self.ledger.callbacks(subject.key)
        return self.ledger.dead_lettered(subject.key)
