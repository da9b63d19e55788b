"""Worker of a sender function's queue: it delivers the messages of a batch, and returns the records that the
queue has to deliver again."""

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from mailroom.aws import clients, queues
from mailroom.clock import Clock
from mailroom.content.payloads import Payloads
from mailroom.environment import Sender
from mailroom.errors import Invalid, Malformed
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Key, Message, decode, key_of
from mailroom.telemetry import count, logger, record_duration, working_on

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_sqs import SQSClient

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
S = TypeVar("S", bound=Sender)
A = TypeVar("A")


class Result(Struct, frozen=True):
    """Result of one record."""


class Done(Result, frozen=True):
    """Result of a record that the queue may delete."""


class ComeBack(Result, frozen=True):
    """Result of a record that the queue has to deliver again."""

    seconds: float
    """Visibility time-out in seconds until the next delivery of the record."""


class HandOver(Result, frozen=True):
    """Result of a record that goes into another queue."""

    queue_url: str


DONE = Done()
TO_DEAD_LETTERS = ComeBack(queues.AT_ONCE)
"""Result of a record that no later try can deliver. The queue delivers the record again at once, until it
becomes a dead letter, so that it does not block its message group for long."""


class QueueRecord(Struct, frozen=True):
    """SQS record, with the item in its body."""

    item: dict[str, Any]
    key: Key
    receives: int
    """Number of receives, counted from 1."""
    group: str | None
    """`MessageGroupId` of SQS, if the record has one."""
    remaining: Callable[[], int]
    """Function that returns the remaining time of the invocation in milliseconds."""
    put_at: float | None = None
    """Time in epoch seconds when the message was put into the mailbox, if that time is known."""
    due_at: float | None = None
    """Time in epoch seconds from which the delay of a message that has waited counts; None if the message has
    not waited."""
    first_received_at: float = math.inf
    """Time in epoch seconds when a sender received the record for the first time."""

    @property
    def fresh(self) -> bool:
        """Whether the ledger probably lacks an item of the message: it is received for the first time, and
        has not waited."""
        return self.receives == 1 and self.due_at is None


class OpenBatch(Protocol[T_contra]):
    """Batch of a channel's messages whose delivery is prepared."""

    def deliver(self, message: T_contra | Invalid, record: QueueRecord) -> Result:
        """Deliver one message as far as possible now, and return the result for its record."""


class ChannelDelivery(Protocol[T]):
    """Interface of a channel's delivery that the worker calls."""

    def read(self, body: dict[str, Any]) -> tuple[dict[str, Any], T | Invalid]:
        """Read the body of a queue record: the item, and its message or the reason why the message is
        invalid. Raises Malformed."""

    def open(self, messages: Sequence[tuple[T, QueueRecord]]) -> AbstractContextManager[OpenBatch[T]]:
        """Prepare the delivery of these messages, which are one batch. Never raises."""

    def retry_wait(self, receives: int, minimum: float = 0) -> float:
        """Return the seconds until the next try after receive number `receives`: at least `minimum` seconds
        if possible."""


class Pace:
    """Rate limit of submits without coordination between workers: each of C workers leaves a gap of C / rate
    seconds between two submits.

    The gap follows a submit, and an invocation ends only after its last gap. So the next invocation may
    submit at once, and a single message does not wait.
    """

    def __init__(
        self, gap: float, clock: Clock, sleep: Callable[[float], None], submit_seconds: float = 0.0
    ) -> None:
        """`gap`: seconds between two submits. `submit_seconds`: maximum time to submit a message and to write
        its outcome into the ledger."""
        self._gap = gap
        self._needed = max(submit_seconds, gap)
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._free = clock()

    @classmethod
    def of(cls, settings: Sender, clock: Clock, sleep: Callable[[float], None]) -> "Pace":
        """Build the pace (minimum time between two submits) from a function's settings."""
        return cls(settings.pace_seconds, clock, sleep, settings.submit_seconds + settings.record_seconds)

    def in_time(self, record: QueueRecord) -> bool:
        """Return whether the next submit, and the write of its outcome into the ledger, would end before the
        function times out."""
        return self.left() < record.remaining() / 1000 - self._needed

    def take_turn(self, record: QueueRecord) -> bool:
        """Sleep until the next submit may start. Returns False, without a sleep, if the function could time
        out before the submit ends."""
        return self.wait(record.remaining() / 1000 - self._needed)

    def left(self) -> float:
        """Return the seconds until the next submit may start."""
        return max(0.0, self._free - self._clock())

    def wait(self, longest: float) -> bool:
        """Sleep until the next submit may start. Returns False, without a sleep, if that is over `longest`
        seconds away."""
        with self._lock:
            moment = self._clock()
            turn = max(moment, self._free)
            if turn - moment > longest:
                return False
            self._free = turn + self._gap
        # The sleep is outside of the lock, so that other threads can reserve their turns meanwhile.
        if turn > moment:
            self._sleep(turn - moment)
        return True

    def rest(self) -> None:
        """Sleep until the gap after the last submit is over."""
        if seconds := self.left():
            self._sleep(seconds)


class Tally:
    """Counts of the results in a batch."""

    def __init__(self) -> None:
        # Results are stored in lists instead of counters, because several threads may append to a list at the
        # same time.
        self._counted: list[str] = []
        self.waits: list[float] = []
        """Seconds until the provider's acceptance of each message, from the put into the mailbox or from the
        time when the message was due."""

    def add(self, metric: str) -> None:
        """Count one record under the metric."""
        self._counted.append(metric)

    def note(self, metric: str, sentence: str, **details: object) -> None:
        """Count and log the result of one record."""
        logger.info(sentence, extra=details)
        self.add(metric)

    def write(self) -> None:
        """Write all counts and durations as metrics, and reset them."""
        for name, value in Counter(self._counted).items():
            count(name, value)
        record_duration("PutToAccepted", *self.waits)
        self._counted.clear()
        self.waits.clear()


@dataclass(frozen=True)
class Tools:
    """Clients and clocks that a delivery uses. `clock` and `sleep` are fields, so that tests can replace them
    and need not wait."""

    ledger: Ledger
    payloads: Payloads
    dynamodb: "DynamoDBClient"
    sqs: "SQSClient"
    pace: Pace
    clock: Clock
    sleep: Callable[[float], None]
    jitter: Callable[[], float]
    """Function that returns a random number from 0 to 1."""
    tally: Tally = field(default_factory=Tally)
    large_message_lock: Lock = field(default_factory=Lock)
    """Lock that a thread holds while it delivers a message with objects in the payload bucket, because the
    function's memory is sized for one such message at a time."""
    once: "DynamoDBClient | None" = None
    """Client that never repeats a call, for writes such as a hold. If it is None, `dynamodb` is used."""

    @classmethod
    def of(cls, settings: Sender) -> "Tools":
        """Build the tools (clients and clocks that a delivery uses) from a function's settings."""
        return cls(
            Ledger.of(settings, lease=settings.lease_seconds),
            Payloads(clients.s3(), settings.payload_bucket),
            clients.dynamodb(),
            clients.sqs(),
            Pace.of(settings, time.time, time.sleep),
            time.time,
            time.sleep,
            random.random,
            once=clients.dynamodb_once(),
        )


class Read(NamedTuple):
    """Queue record whose body has a valid key, and its message."""

    message: Any
    """Message of the channel's class, or Invalid with the reason why the message is invalid."""
    record: QueueRecord


class Received(Struct, frozen=True):
    """Record of an event from Lambda, with the message in its body."""

    record: Mapping[str, Any]
    """Record in the form of an event from Lambda."""
    entry: Read | None
    """Parsed record, including the message; None if the body lacks a valid key."""


class Worker:
    """Delivers the messages of one queue; every sender function uses this class. It delivers up to `at_once`
    records of a batch at the same time, in threads."""

    def __init__(
        self, queue_url: str, tools: Tools, delivery: ChannelDelivery[Any], at_once: int = 1
    ) -> None:
        self._queue_url = queue_url
        self._at_once = at_once
        self._tools = tools
        self._delivery = delivery

    @classmethod
    def of(cls, settings: S, adapter: A, delivery: Callable[[S, A, Tools], ChannelDelivery[Any]]) -> "Worker":
        """Build the worker from a function's settings; `delivery` builds the delivery of its channel."""
        tools = Tools.of(settings)
        return cls(settings.queue_url, tools, delivery(settings, adapter, tools), settings.submits_at_once)

    def handle(self, event: Mapping[str, Any], remaining: Callable[[], int]) -> dict[str, Any]:
        """Deliver a batch. `remaining` is Lambda's `get_remaining_time_in_millis`.

        Returns the partial batch response: the records that the queue has to deliver again.
        """
        try:
            return self._handle(event, remaining)
        finally:
            self._tools.pace.rest()

    def _handle(self, event: Mapping[str, Any], remaining: Callable[[], int]) -> dict[str, Any]:
        records = sorted(event["Records"], key=self._order)
        batch = [Received(record, self._read(record, remaining)) for record in records]
        cut_off = self._cut_off(batch)
        # A function timed out or crashed while it worked on these messages, perhaps because of the content of
        # one of them. So only one of them is delivered, separately and last: if the function crashes again,
        # no other message of the batch is delayed.
        unfinished = self._return(cut_off[:-1], [ComeBack(0)] * len(cut_off[:-1]))
        doubtful = {received.record["messageId"] for received in cut_off}
        undoubted = [received for received in batch if received.record["messageId"] not in doubtful]
        for part in (undoubted, cut_off[-1:]):
            if part:
                unfinished += self._deliver(part)
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in unfinished]}

    def _deliver(self, batch: Sequence[Received]) -> list[str]:
        """Deliver a batch, and return the ids of the records that the queue has to deliver again."""
        entries = [received.entry for received in batch]
        valid = [entry for entry in entries if entry is not None and not isinstance(entry.message, Invalid)]
        with self._delivery.open(valid) as messages:
            results = self._handed_over(batch, self._work_on(messages, entries))
        unfinished = self._return(batch, results)
        self._tools.tally.write()
        return unfinished

    def _handed_over(self, batch: Sequence[Received], results: Sequence[Result]) -> list[Result]:
        """Send the records with the result HandOver to their other queue, and return the results of all
        records: DONE for a record that was sent, and otherwise the wait until the next try. The queue deletes
        a record only afterwards, so after a crash both queues have it. Then the ledger's claim prevents a
        second send."""
        entries: dict[str, list[queues.Entry]] = {}
        for received, result in zip(batch, results, strict=True):
            if isinstance(result, HandOver) and received.entry is not None:
                entries.setdefault(result.queue_url, []).append(
                    _entry(received.record, received.entry.record)
                )
        unsent = {id_ for url, group in entries.items() for id_ in queues.send(self._tools.sqs, url, group)}
        return [
            self._after_move(received, unsent) if isinstance(result, HandOver) else result
            for received, result in zip(batch, results, strict=True)
        ]

    def _after_move(self, received: Received, unsent: Container[str]) -> Result:
        """Return the result of a record that was to be sent to another queue. `unsent` contains the ids of
        the records that were not sent."""
        if received.entry is None or received.record["messageId"] not in unsent:
            return DONE
        return ComeBack(self._delivery.retry_wait(received.entry.record.receives))

    def _return(self, batch: Sequence[Received], results: Sequence[Result]) -> list[str]:
        """Set the visibility time-outs of the records that the queue has to deliver again, and return their
        ids."""
        waits = {
            received.record["messageId"]: (received.record["receiptHandle"], result.seconds)
            for received, result in zip(batch, results, strict=True)
            if isinstance(result, ComeBack)
        }
        queues.set_visibility(self._tools.sqs, self._queue_url, list(waits.values()))
        return [*waits]

    def _cut_off(self, batch: Sequence[Received]) -> list[Received]:
        """Return the messages during whose delivery a function timed out or crashed, with the most receives
        last. Never raises: if the ledger cannot be read, the list is empty."""
        candidates = [
            (received.entry.record.key, received)
            for received in batch
            if received.entry is not None and received.entry.record.receives > 1
            # A FIFO queue delivers the messages of a group one after another anyway.
            if received.entry.record.group is None
        ]
        if not candidates or len(batch) == 1:
            return []
        try:
            keys = self._tools.ledger.cut_off(key for key, _ in candidates)
        except Exception:  # noqa: BLE001 - logged; all messages are delivered in one batch
            logger.warning("claims of crashed functions could not be read", exc_info=True)
            return []
        if keys:
            logger.warning("a function timed out or crashed; retrying one message alone", messages=len(keys))
        return [received for key, received in candidates if key in keys]

    def _order(self, record: Mapping[str, Any]) -> tuple[int, float]:
        """Return the sort key of a record in its batch. A record that was received before may have crashed
        the function, so that record comes last: another crash then does not repeat the other records. Records
        with the same number of receives are shuffled. Records of a FIFO queue keep their order."""
        receives = int(record["attributes"]["ApproximateReceiveCount"])
        if receives == 1 or "MessageGroupId" in record["attributes"]:
            return 0, 0
        return receives, self._tools.jitter()

    def _read(self, record: Mapping[str, Any], remaining: Callable[[], int]) -> Read | None:
        """Read a queue record. Returns None if its body lacks a valid key."""
        try:
            item, message = self._delivery.read(decode(record["body"]))
            # A message has been parsed, so its key is valid.
            key = message.key if isinstance(message, Message) else key_of(item)
        except Malformed as fault:
            logger.error("not a message", reason=str(fault), message_id=record["messageId"])
            return None
        attributes = record["attributes"]
        receives, group = int(attributes["ApproximateReceiveCount"]), attributes.get("MessageGroupId")
        times = queues.put_at(record), queues.due_at(record), queues.first_received_at(record)
        return Read(message, QueueRecord(item, key, receives, group, remaining, *times))

    def _work_on(self, messages: OpenBatch[Any], entries: Iterable[Read | None]) -> list[Result]:
        work = partial(self._work, messages)
        if self._at_once == 1:
            results = [work(entry) for entry in entries]
            working_on(None)  # later log lines are not about the last message
            return results
        with ThreadPoolExecutor(self._at_once) as threads:
            return [*threads.map(work, entries)]

    def _work(self, messages: OpenBatch[Any], entry: Read | None) -> Result:
        """Deliver the message of one record. Never raises: a fault of one record must not end the batch."""
        if entry is None:
            self._tools.tally.add("Malformed")
            return TO_DEAD_LETTERS
        message, record = entry
        working_on(record.key)
        try:
            return messages.deliver(message, record)
        except Exception:  # noqa: BLE001 - any error is logged, and the queue keeps the record
            logger.exception("not delivered; it goes back to the queue")
            self._tools.tally.add("Errors")
            return ComeBack(self._delivery.retry_wait(record.receives))


def _entry(record: Mapping[str, Any], read: QueueRecord) -> queues.Entry:
    """Return the entry by which a record is sent to another queue. The time from which the message's delay
    counts does not change. Because the entry has this time, the receiver knows that the ledger has an item of
    the message (see `QueueRecord.fresh`)."""
    times = {queues.PUT_AT: read.put_at, queues.DUE_AT: read.due_at or read.put_at}
    attributes = {name: str(int(time)) for name, time in times.items() if time is not None}
    return queues.Entry(record["messageId"], record["body"], attributes, group=read.group)
