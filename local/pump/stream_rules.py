"""How Lambda treats a batch of stream records, as pure rules: what comes after an invocation.

Where AWS's documentation is silent (bisecting, and the first record of the batch is the lowest that failed),
the batch is halved, as after a function error: it is the reading in which a poisoned record cannot take its
neighbours along.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from local.pump.functions import Invoked
from local.pump.stream_mapping import Record, StreamMapping

RETRIES_EXHAUSTED = "RetryAttemptsExhausted"
TOO_OLD = "RecordAgeExceeded"
BACKOFF_SECONDS = 0.1
BACKOFF_CAP_SECONDS = 5.0


@dataclass(frozen=True)
class Batch:
    """Records still to be delivered together. `retries` were used up, of `invocations` so far."""

    records: tuple[Record, ...]
    retries: int = 0
    invocations: int = 0


@dataclass(frozen=True)
class Next:
    """What follows an invocation: batches in their order, and records that are given up on."""

    batches: tuple[Batch, ...] = ()
    given_up: tuple[Record, ...] = ()


def after(batch: Batch, invoked: Invoked, mapping: StreamMapping) -> Next:
    """The rules in one place. `batch` counts the invocation already; a split costs no retry."""
    if invoked.refused:  # throttled: bounded by the records' age alone
        return Next((batch,))
    failed = first_failed(batch.records, invoked, mapping)
    if failed is None:
        return Next()
    rest = batch.records[failed:]
    if mapping.bisects and failed > 0:
        return Next((Batch(rest, batch.retries, batch.invocations),))
    if mapping.bisects and len(rest) > 1:
        return Next(_halves(batch))
    if 0 <= mapping.max_retries <= batch.retries:
        return Next(given_up=rest)
    return Next((Batch(rest, batch.retries + 1, batch.invocations),))


def first_failed(records: Sequence[Record], invoked: Invoked, mapping: StreamMapping) -> int | None:
    """Where a retry starts: the lowest reported sequence number; None if all went well.

    An identifier that is missing, empty or not of this batch fails the whole batch.
    """
    if invoked.error is not None:
        return 0
    if not mapping.reports_failures or not isinstance(invoked.payload, dict):
        return None
    failures = invoked.payload.get("batchItemFailures") or []
    places = {record.sequence: place for place, record in enumerate(records)}
    identifiers = [each.get("itemIdentifier") if isinstance(each, dict) else None for each in failures]
    return min((places.get(identifier or "", 0) for identifier in identifiers), default=None)


def split_expired(batch: Batch, mapping: StreamMapping, now: float) -> tuple[tuple[Record, ...], Batch]:
    """Records that outlived the mapping's age, and the batch without them. `now` in epoch seconds."""
    oldest = now - mapping.max_age_seconds
    expired = tuple(record for record in batch.records if record.created < oldest)
    fresh = tuple(record for record in batch.records if record.created >= oldest)
    return expired, Batch(fresh, batch.retries, batch.invocations)


def backoff(failures: int) -> float:
    """Seconds before the next invocation, after so many failed ones in a row."""
    return min(BACKOFF_CAP_SECONDS, BACKOFF_SECONDS * 2.0 ** min(failures, 10))


def _halves(batch: Batch) -> tuple[Batch, Batch]:
    middle = len(batch.records) // 2
    first, second = batch.records[:middle], batch.records[middle:]
    return (
        Batch(first, batch.retries, batch.invocations),
        Batch(second, batch.retries, batch.invocations),
    )
