"""A stream in memory: numbered records, and a function with prepared responses."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mailroom_local.pump.functions import Invoked
from mailroom_local.pump.streams import GivenUp, Record, StreamDelivery, StreamMapping

NOW = 1_800_000_000.0
MAPPING = StreamMapping(
    uuid="8d5c1d9e-0000-4000-8000-000000000001",
    function="arn:aws:lambda:us-east-1:000000000000:function:dispatch",
    stream="arn:aws:dynamodb:us-east-1:000000000000:table/mailbox/stream/1",
    batch_size=100,
    max_retries=2,
    parallel=1,
    failures_bucket="unprocessed",
)


def stream_record(number: int, created: float = NOW) -> Record:
    """Return the record with this sequence number."""
    text = json.dumps({"eventID": str(number), "dynamodb": {"SequenceNumber": str(number)}})
    return Record(sequence=str(number), created=created, key=number, text=text)


def records(*numbers: int) -> list[Record]:
    return [stream_record(number) for number in numbers]


def numbers(them: Sequence[Record]) -> list[int]:
    return [int(each.sequence) for each in them]


def invoked_with_failed(*failed: int) -> Invoked:
    """Return a response with these batch item failures."""
    return Invoked("request", {"batchItemFailures": [{"itemIdentifier": str(number)} for number in failed]})


RAISED = Invoked("request", {"errorMessage": "boom"}, error="Unhandled")
REFUSED = Invoked(refused=True)
DONE = Invoked("request", None)


@dataclass
class Run:
    """A delivery that records invocations, waits and given-up batches."""

    answer: Callable[[list[int]], Invoked]
    mapping: StreamMapping = MAPPING
    invoked: list[list[int]] = field(default_factory=list)
    given_up: list[GivenUp] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)

    def deliver(self, them: Sequence[Record]) -> "Run":
        StreamDelivery(self.mapping, self._invoke, self.given_up.append, self.waited.append).deliver(them)
        return self

    def lost(self) -> list[int]:
        """Return the records that were given up."""
        return [number for each in self.given_up for number in numbers(each.records)]

    def _invoke(self, them: Sequence[Record]) -> Invoked:
        self.invoked.append(numbers(them))
        return self.answer(numbers(them))


def raising_on(*poisoned: int) -> Callable[[list[int]], Invoked]:
    """Return a function that raises if any of these is in its batch."""
    return lambda batch: RAISED if set(poisoned) & set(batch) else DONE


def reporting(*poisoned: int) -> Callable[[list[int]], Invoked]:
    """Return a function that reports each of these as failed, and handles the others."""
    return lambda batch: invoked_with_failed(*(number for number in batch if number in poisoned))
