"""Turns outcomes into consequences: changes of the ledger in, callbacks and further attempts out."""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import structs

from mailroom.aws import clients, queues
from mailroom.aws.queues import Entry
from mailroom.clock import Clock
from mailroom.environment import Outcomes as Settings
from mailroom.ledger import change as changes
from mailroom.ledger.change import LedgerChange
from mailroom.message.body import encode
from mailroom.outcomes.callbacks import callback_of
from mailroom.outcomes.failures import Failures
from mailroom.outcomes.retries import Schedule, retry_of
from mailroom.telemetry import about, count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


class Outcomes:
    """Works for the ledger's stream. Repeating it is harmless: a callback keeps its id, and a second copy
    of an attempt is dropped by the claim."""

    def __init__(self, settings: Settings, sqs: "SQSClient", clock: Clock = time.time) -> None:
        self._settings = settings
        self._sqs = sqs
        self._clock = clock
        self._schedule = Schedule(
            settings.retry_delay_seconds, settings.retry_growth, settings.retry_delay_cap_seconds
        )

    @classmethod
    def of(cls, settings: Settings) -> "Outcomes":
        """What a function's settings describe."""
        return cls(settings, clients.sqs())

    def handle(self, records: Iterable[Mapping[str, Any]]) -> set[str]:
        """The sequence numbers of the records that must be handled again."""
        entries: dict[str, list[Entry]] = defaultdict(list)
        failed: set[str] = set()
        failures = Failures(self._settings.channels)
        for record in records:
            sequence = str(record["dynamodb"]["SequenceNumber"])
            try:
                change = changes.read(record)
                if change is not None:
                    self._follow(change, sequence, entries)
                    failures.see(change)
            except Exception:  # noqa: BLE001 - logged, and the stream keeps the record
                logger.exception("no consequence drawn; it is tried again", sequence=sequence)
                failed.add(sequence)
        for url, batch in entries.items():
            failed |= queues.send(self._sqs, url, batch)
        failures.count()
        return failed

    def _follow(self, change: LedgerChange, sequence: str, entries: dict[str, list[Entry]]) -> None:
        callback = callback_of(change, self._settings.max_attempts)
        if callback is not None:
            body = encode(structs.asdict(callback))
            entries[self._settings.webhook_queue_url].append(Entry(sequence, body, group=callback.group))
            count("Callbacks")
        retry = retry_of(change, self._schedule)
        if retry is not None:
            entries[self._settings.retry_queue_url].append(self._delayed(sequence, retry))
            logger.info("another attempt follows", extra=about(change.key), attempt=retry["attempt"])
            count("Retries")

    def _delayed(self, sequence: str, retry: Mapping[str, Any]) -> Entry:
        """What a queue cannot delay any longer, the mover waits for."""
        wait = math.ceil(retry["not_before"] - self._clock())
        return Entry(sequence, encode(retry), delay=max(0, min(queues.MAX_DELAY_SECONDS, wait)))
