"""Event source mapping of a DynamoDB stream by Lambda's rules: its records, its filters, and the steps after
an invocation.

AWS does not document how a batch is bisected if the function reports the first record of the batch as failed.
Here the batch is halved, as after a function error, so that a record that always fails does not make other
records fail.
"""

import json
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mailroom_local.pump.functions import Invoked

MISSING = object()
# Comparison operators of AWS's event filters that the stacks use.
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "prefix": lambda value, wanted: isinstance(value, str) and value.startswith(wanted),
    "exists": lambda value, wanted: (value is not MISSING) == wanted,
    "anything-but": lambda value, wanted: (
        value is not MISSING and value not in (wanted if isinstance(wanted, list) else [wanted])
    ),
}
BACKOFF_SECONDS = 0.1
BACKOFF_CAP_SECONDS = 5.0


@dataclass(frozen=True)
class StreamMapping:
    """Settings of a mapping, limited to those in which the stacks' mappings differ. All mappings bisect a
    failed batch, accept reports of failed records, and do not wait to fill a batch. A record is retried for
    some seconds at most, so the maximum age of records is never reached."""

    uuid: str
    function: str
    stream: str
    batch_size: int
    max_retries: int
    parallel: int
    failures_bucket: str
    patterns: tuple[dict[str, Any], ...] = ()

    @classmethod
    def from_api(cls, answer: Mapping[str, Any]) -> "StreamMapping":
        """Parse an entry of the response of ListEventSourceMappings."""
        filters = (answer.get("FilterCriteria") or {}).get("Filters", [])
        return cls(
            uuid=answer["UUID"],
            function=answer["FunctionArn"],
            stream=answer["EventSourceArn"],
            batch_size=answer["BatchSize"],
            max_retries=answer["MaximumRetryAttempts"],
            parallel=answer.get("ParallelizationFactor", 1),
            failures_bucket=answer["DestinationConfig"]["OnFailure"]["Destination"].rpartition(":")[2],
            patterns=tuple(json.loads(entry["Pattern"]) for entry in filters),
        )


@dataclass(frozen=True)
class Record:
    """Change of an item in the form of a Lambda event, serialized once."""

    sequence: str
    created: float
    key: int
    text: str

    @classmethod
    def from_stream(cls, record: Mapping[str, Any], stream: str) -> "Record":
        """Parse an entry of the response of GetRecords, in its JSON form."""
        change = record["dynamodb"]
        return cls(
            sequence=change["SequenceNumber"],
            created=float(change["ApproximateCreationDateTime"]),
            key=zlib.crc32(json.dumps(change["Keys"], sort_keys=True).encode()),
            text=json.dumps({**record, "eventSourceARN": stream}, separators=(",", ":")),
        )

    @cached_property
    def event(self) -> dict[str, Any]:
        """Record as the function gets it."""
        return dict(json.loads(self.text))


def passes(record: Mapping[str, Any], patterns: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a record matches any of `patterns`, or `patterns` is empty."""
    return not patterns or any(_matches(record, pattern) for pattern in patterns)


def _matches(record: Any, pattern: Mapping[str, Any]) -> bool:
    if not isinstance(record, Mapping):
        return False
    return all(
        _matches(record.get(key), rule)
        if isinstance(rule, Mapping)
        else any(_equals(record.get(key, MISSING), expected) for expected in rule)
        for key, rule in pattern.items()
    )


def _equals(value: Any, expected: Any) -> bool:
    if not isinstance(expected, Mapping):
        return bool(value == expected)
    operator, operand = next(iter(expected.items()))
    if operator not in OPERATORS:
        raise ValueError(f"The pump supports only the operators {sorted(OPERATORS)}, not {operator!r}.")
    return OPERATORS[operator](value, operand)


@dataclass(frozen=True)
class StreamBatch:
    """Records to be delivered together. `retries` is the number of retries used so far, and `invocations` the
    number of invocations."""

    records: tuple[Record, ...]
    retries: int = 0
    invocations: int = 0


@dataclass(frozen=True)
class FollowUp:
    """Next steps after an invocation: batches to deliver, in order, and records to give up."""

    batches: tuple[StreamBatch, ...] = ()
    given_up: tuple[Record, ...] = ()


def after(batch: StreamBatch, invoked: Invoked, max_retries: int) -> FollowUp:
    """Return the next steps after an invocation, which `batch` already counts. Splitting a batch does not
    count as a retry."""
    if invoked.refused:  # a throttled invocation does not count as a retry
        return FollowUp((batch,))
    failed = first_failed(batch.records, invoked)
    if failed is None:
        return FollowUp()
    unhandled = batch.records[failed:]
    if failed > 0:
        return FollowUp((replace(batch, records=unhandled),))
    if len(unhandled) > 1:
        middle = len(unhandled) // 2
        halves = (unhandled[:middle], unhandled[middle:])
        return FollowUp(tuple(replace(batch, records=half) for half in halves))
    if batch.retries >= max_retries:
        return FollowUp(given_up=unhandled)
    return FollowUp((replace(batch, retries=batch.retries + 1),))


def first_failed(records: Sequence[Record], invoked: Invoked) -> int | None:
    """Return the index of the first record to retry, which has the lowest reported sequence number, or None
    if no record failed.

    If an identifier is missing, empty or not of this batch, the whole batch has failed.
    """
    if invoked.error is not None:
        return 0
    places = {record.sequence: place for place, record in enumerate(records)}
    return min((places.get(identifier, 0) for identifier in invoked.reported), default=None)


def backoff(failures: int) -> float:
    """Return the seconds to wait before the next invocation after `failures` failed ones in a row."""
    return min(BACKOFF_CAP_SECONDS, BACKOFF_SECONDS * 2.0 ** min(failures, 10))


@dataclass(frozen=True)
class GivenUp:
    """Records whose retries are used up, with their last invocation and the total number of invocations."""

    records: tuple[Record, ...]
    last: Invoked
    invocations: int


@dataclass(frozen=True)
class StreamDelivery:
    """Delivers batches by the rules of this module. `invoke` must not raise."""

    mapping: StreamMapping
    invoke: Callable[[Sequence[Record]], Invoked]
    give_up: Callable[[GivenUp], None]
    sleep: Callable[[float], None] = time.sleep

    def deliver(self, records: Sequence[Record]) -> None:
        """Deliver records in the order of the stream. Returns when all records were processed or given up."""
        waiting = deque([StreamBatch(tuple(records))])
        failures = 0
        while waiting:
            batch = waiting.popleft()
            last = self.invoke(batch.records)
            batch = replace(batch, invocations=batch.invocations + 1)
            step = after(batch, last, self.mapping.max_retries)
            if step.given_up:
                self.give_up(GivenUp(step.given_up, last, batch.invocations))
            waiting.extendleft(reversed(step.batches))
            failures = failures + 1 if step.batches else 0
            if step.batches:
                self.sleep(backoff(failures - 1))
