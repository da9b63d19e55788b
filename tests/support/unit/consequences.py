"""Outcomes, fed with changes of the ledger, and what they ask of the queues."""

from typing import Any

import pytest

from mailroom.clock import iso
from mailroom.environment import OutcomesSettings
from mailroom.outcomes import EventBus, Outcomes
from tests.support.unit.fakes import Meddler
from tests.support.unit.fax import LINE, PDF, TOLD
from tests.support.unit.shared import NOW, Aws, FakeClock, image

FAX = {
    "id": "f-1",
    "event_type": "fax",
    "status": "sending",
    "to": LINE,
    "pdf_url": PDF,
    "callback_url": TOLD,
    "callbacks": {},
}
BUSY = {"code": "busy", "message": "Fax status: busy"}


def ledger_record(number: int = 100, old: dict[str, Any] = FAX, **changes: Any) -> dict[str, Any]:
    """A record of the ledger's stream."""
    new = {**old, "updatedAt": iso(NOW), **changes}
    return {
        "eventName": "MODIFY",
        "dynamodb": {
            "SequenceNumber": str(number),
            "OldImage": image(**old),
            "NewImage": image(**{name: value for name, value in new.items() if value is not ...}),
        },
    }


def busy(number: int = 100, attempts: int = 1, **changes: Any) -> dict[str, Any]:
    return ledger_record(number, status="retrying", attempts=attempts, error=BUSY, **changes)


class Consequences:
    """Outcomes, with the entries that it put on the queues."""

    def __init__(
        self, aws: Aws, clock: FakeClock, sqs: Meddler | None = None, events: Any = None, **changes: Any
    ) -> None:
        self.sqs = sqs or Meddler(aws.sqs)
        given: dict[str, Any] = {
            "webhook_queue_url": aws.urls["webhook"],
            "retry_queue_url": aws.urls["fax-retry"],
            "max_attempts": 20,
            "retry_delay_seconds": 600,
            "channels": ["mail", "fax"],
        }
        settings = OutcomesSettings(**{**given, **changes})
        bus = None if events is None else EventBus(events, settings)
        self.outcomes = Outcomes(settings, self.sqs, clock, bus)  # type: ignore[arg-type]

    def handle(self, *records: dict[str, Any]) -> set[str]:
        return self.outcomes.handle(records)

    def entries(self, queue: str) -> list[dict[str, Any]]:
        """Return the calls to the queue of this name."""
        return [
            entry
            for _, call in self.sqs.calls
            if call["QueueUrl"].endswith(f"mailroom-test-{queue}")
            for entry in call["Entries"]
        ]


@pytest.fixture
def consequences(aws: Aws, clock: FakeClock) -> Consequences:
    return Consequences(aws, clock)
