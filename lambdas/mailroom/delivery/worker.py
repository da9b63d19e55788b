"""The worker: one batch of queue records in, those that must come back out."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct

from mailroom.aws import clients, queues
from mailroom.clock import Clock
from mailroom.content.payloads import Payloads
from mailroom.environment import Sender
from mailroom.errors import Invalid, Malformed
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Key, decode, key_of
from mailroom.telemetry import count, logger, record_duration, working_on

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_sqs import SQSClient

T = TypeVar("T")
S = TypeVar("S", bound=Sender)
A = TypeVar("A")
Wait = float | None
"""Seconds until the record should come back; None: it is finished with."""


class QueueRecord(Struct, frozen=True):
    """One record of a queue: its item and key, how often it was received, its group (None: it has none), the
    function's time left in milliseconds, since when it waits (epoch seconds; None: nobody can tell), and
    whether it has waited for its slot of the day."""

    item: dict[str, Any]
    key: Key
    receives: int
    group: str | None
    remaining: Callable[[], int]
    since: float | None = None
    in_line: bool = False


class ChannelDelivery(Protocol[T]):
    """What takes a channel's messages to their provider, as the worker sees it."""

    def read(self, body: dict[str, Any]) -> tuple[dict[str, Any], T | Invalid]:
        """The item that a queue's body stands for, and its message, or what is wrong with it. Raises
        Malformed."""

    def begin(self, messages: Sequence[tuple[T, QueueRecord]]) -> None:
        """A batch begins with these messages. Raises nothing."""

    def deliver(self, message: T | Invalid, record: QueueRecord) -> Wait:
        """Take one message as far as it goes."""

    def end(self) -> None:
        """The batch is over. Raises nothing."""

    def retry_wait(self, receives: int, least: float = 0) -> float:
        """Seconds until the next try after the n-th receive, `least` where it can be."""


class Pace:
    """A rate kept without coordination: C workers that each leave C / rate seconds between submits.

    The gap follows a submit, and an invocation is not over before its last gap is: so whichever environment
    comes next may submit at once, and a lone message waits for nothing.
    """

    def __init__(self, gap: float, clock: Clock, sleep: Callable[[float], None]) -> None:
        self.gap = gap
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._free = clock()

    def left(self) -> float:
        """Seconds until the next submit may start."""
        return max(0.0, self._free - self._clock())

    def wait(self, most: float) -> bool:
        """Sleep until the next submit may start. False, and no sleep, if that is over `most` seconds away."""
        with self._lock:
            now = self._clock()
            turn = max(now, self._free)
            if turn - now > most:
                return False
            self._free = turn + self.gap
        # Outside of the lock: the others take their turns meanwhile.
        if turn > now:
            self._sleep(turn - now)
        return True

    def rest(self) -> None:
        """Sleep until the gap after the last submit is over."""
        if left := self.left():
            self._sleep(left)


class Tally:
    """What came of a batch: `counts` by metric, and the `waits` of what was accepted, in seconds since it was
    put or was due."""

    def __init__(self) -> None:
        # Lists, because threads may append to one list at once.
        self._counted: list[str] = []
        self.waits: list[float] = []

    @property
    def counts(self) -> Counter[str]:
        return Counter(self._counted)

    def add(self, metric: str) -> None:
        self._counted.append(metric)

    def note(self, metric: str, sentence: str, **details: object) -> Wait:
        """Count and log what became of a record."""
        logger.info(sentence, extra=details)
        self.add(metric)
        return None

    def write(self) -> None:
        """Write all as metrics, and begin anew."""
        for name, value in self.counts.items():
            count(name, value)
        for seconds in self.waits:
            record_duration("PutToAccepted", seconds)
        self._counted.clear()
        self.waits.clear()


@dataclass(frozen=True)
class Tools:
    """What a delivery works with; time among it, so that tests need none."""

    ledger: Ledger
    payloads: Payloads
    dynamodb: "DynamoDBClient"
    sqs: "SQSClient"
    pace: Pace
    clock: Clock
    sleep: Callable[[float], None]
    jitter: Callable[[], float]
    tally: Tally = field(default_factory=Tally)
    large: Lock = field(default_factory=Lock)
    """Held by the thread whose message has objects in the payload bucket: memory has room for one such."""

    @classmethod
    def of(cls, settings: Sender) -> "Tools":
        return cls(
            Ledger.of(settings, lease=settings.lease_seconds),
            Payloads(clients.s3(), settings.payload_bucket),
            clients.dynamodb(),
            clients.sqs(),
            Pace(settings.pace_seconds, time.time, time.sleep),
            time.time,
            time.sleep,
            random.random,
        )


class Worker:
    """Works for one queue; every sender is this class. `at_once` records of a batch are delivered at a time,
    each by a thread of its own."""

    def __init__(
        self, queue_url: str, tools: Tools, delivery: ChannelDelivery[Any], at_once: int = 1
    ) -> None:
        self._queue_url = queue_url
        self._at_once = at_once
        self._tools = tools
        self._delivery = delivery

    @classmethod
    def of(cls, settings: S, adapter: A, delivery: Callable[[S, A, Tools], ChannelDelivery[Any]]) -> "Worker":
        """The worker that a function's settings describe; `delivery` is how its channel delivers."""
        tools = Tools.of(settings)
        return cls(settings.queue_url, tools, delivery(settings, adapter, tools), settings.submits_at_once)

    def handle(self, event: Mapping[str, Any], remaining: Callable[[], int]) -> dict[str, Any]:
        """Work through a batch. `remaining` is Lambda's `get_remaining_time_in_millis`.

        Returns the partial batch response: the records that are not finished.
        """
        try:
            return self._handle(event, remaining)
        finally:
            self._tools.pace.rest()

    def _handle(self, event: Mapping[str, Any], remaining: Callable[[], int]) -> dict[str, Any]:
        records = sorted(event["Records"], key=self._order)
        opened = [(each, self._opened(each, remaining)) for each in records]
        whole = [each for _, each in opened if each is not None]
        self._delivery.begin([each for each in whole if not isinstance(each[0], Invalid)])
        waits = {}
        for (record, _), wait in zip(opened, self._worked(each for _, each in opened), strict=True):
            if wait is not None:
                waits[record["messageId"]] = (record["receiptHandle"], wait)
        self._delivery.end()
        queues.set_visibility(self._tools.sqs, self._queue_url, list(waits.values()))
        self._tools.tally.write()
        return {"batchItemFailures": [{"itemIdentifier": each} for each in waits]}

    def _order(self, record: Mapping[str, Any]) -> tuple[int, float]:
        """What may have cut the function off before goes last, so that it keeps no neighbour from being sent
        again and again: those of one number of receives in another order each time. A group keeps its own."""
        receives = int(record["attributes"]["ApproximateReceiveCount"])
        if receives == 1 or "MessageGroupId" in record["attributes"]:
            return 0, 0
        return receives, self._tools.jitter()

    def _opened(
        self, record: Mapping[str, Any], remaining: Callable[[], int]
    ) -> tuple[Any, QueueRecord] | None:
        """The record, read; None where it is no message at all."""
        try:
            item, message = self._delivery.read(decode(record["body"]))
            key = key_of(item)
        except Malformed as fault:
            logger.error("not a message", reason=str(fault), message_id=record["messageId"])
            return None
        attributes = record["attributes"]
        receives, group = int(attributes["ApproximateReceiveCount"]), attributes.get("MessageGroupId")
        in_line = queues.IN_LINE in record.get("messageAttributes", {})
        return message, QueueRecord(item, key, receives, group, remaining, queues.put_at(record), in_line)

    def _worked(self, opened: Iterable[tuple[Any, QueueRecord] | None]) -> list[Wait]:
        if self._at_once == 1:
            return [self._work(each) for each in opened]
        with ThreadPoolExecutor(self._at_once) as threads:
            return [*threads.map(self._work, opened)]

    def _work(self, opened: tuple[Any, QueueRecord] | None) -> Wait:
        """Work on one record. Raises nothing: its fault must not end the batch."""
        if opened is None:
            self._tools.tally.add("Malformed")
            return queues.AT_ONCE
        message, record = opened
        working_on(record.key)
        try:
            return self._delivery.deliver(message, record)
        except Exception:  # noqa: BLE001 - whatever it is, it is logged and the queue keeps the record
            logger.exception("not delivered; it goes back to the queue")
            self._tools.tally.add("Errors")
            return self._delivery.retry_wait(record.receives)
        finally:
            working_on(None)
