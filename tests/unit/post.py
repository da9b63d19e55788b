"""A worker with an adapter that says what it is told."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.content.payloads import Payloads
from mailroom.delivery.delivery import Delivery
from mailroom.delivery.suppressing_delivery import SuppressingDelivery
from mailroom.delivery.worker import Worker
from mailroom.environment import Sender
from mailroom.ledger.ledger import Ledger
from mailroom.message.outcome import Sent
from mailroom.recipients.choices import Preferences, Suppressions
from tests.unit.events import failures, plenty, sqs_event
from tests.unit.fakes import FakeAdapter, Meddler
from tests.unit.support import BUCKET, LEASE, LEDGER, PREFERENCES, TTL, Aws, FakeClock, Item

Log = Callable[[], list[dict[str, Any]]]
Counted = Callable[[], dict[str, float]]
SETTINGS: dict[str, Any] = {
    "ledger_table": LEDGER,
    "ledger_ttl_seconds": TTL,
    "payload_bucket": BUCKET,
    "channel": "mail",
    "queue_url": "https://sqs.example/mail",
    "lease_seconds": LEASE,
    "pace_seconds": 0,
    "on_unknown": "resend",
    "backoff_seconds": 4,
    "backoff_cap_seconds": 600,
    "misconfigured_seconds": 20,
    "submit_seconds": 10,
    "record_seconds": 5,
}


class Post:
    """A worker with its adapter, and the visibilities that it asked of the queue."""

    def __init__(
        self,
        aws: Aws,
        clock: FakeClock,
        adapter: FakeAdapter,
        dynamodb: Any = None,
        jitter: float = 1.0,
        suppressions: Suppressions | None = None,
        **changes: Any,
    ) -> None:
        self.adapter = adapter
        self._sqs = Meddler(aws.sqs, change_message_visibility_batch=lambda _real, **_arguments: {})
        self._worker = Worker(
            Sender(**{**SETTINGS, **changes}),
            adapter,
            ledger=Ledger(dynamodb or aws.dynamodb, LEDGER, lease=LEASE, ttl=TTL, clock=clock),
            payloads=Payloads(aws.s3, BUCKET),
            sqs=self._sqs,  # type: ignore[arg-type]
            clock=clock,
            sleep=clock.sleep,
            jitter=lambda: jitter,
            suppressions=suppressions,
            preferences=_preferences(suppressions, clock),
            delivery=SuppressingDelivery if suppressions else Delivery,
        )

    def handle(
        self, *bodies: str | Item, receives: int = 1, remaining: Callable[[], int] = plenty
    ) -> dict[str, int]:
        """The records that come back, each with its visibility in seconds."""
        self._sqs.calls.clear()
        returned = failures(self._worker.handle(sqs_event(*bodies, receives=receives), remaining))
        waits = {
            each["ReceiptHandle"].replace("receipt", "r"): each["VisibilityTimeout"]
            for _, call in self._sqs.calls
            for each in call["Entries"]
        }
        assert list(waits) == returned
        return waits

    @property
    def submitted(self) -> list[str]:
        return [message.id for message in self.adapter.submitted]


def _preferences(suppressions: Suppressions | None, clock: FakeClock) -> Preferences | None:
    return Preferences(suppressions.client, PREFERENCES, clock) if suppressions else None


Make = Callable[..., Post]


@pytest.fixture
def post(aws: Aws, clock: FakeClock) -> Make:
    def make(*says: Any, evidence: Any = None, prepare: Any = None, **changes: Any) -> Post:
        adapter = FakeAdapter(*(says or (Sent("p-1"),)), evidence=evidence, prepare=prepare)
        return Post(aws, clock, adapter, **changes)

    return make
