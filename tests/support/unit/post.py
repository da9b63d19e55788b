"""A worker whose adapter returns given outcomes."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from mailroom.aws.queues import DUE_AT, PUT_AT
from mailroom.channels.mail.contract import Mail
from mailroom.content.payloads import Payloads
from mailroom.delivery.delivery import Delivery, to_people
from mailroom.delivery.worker import Pace, Tools, Worker
from mailroom.environment import Sender, SuppressingSender
from mailroom.ledger.ledger import Ledger
from mailroom.message.outcome import Sent
from mailroom.recipients.choices import Suppressions
from mailroom_stacks.settings.queues import RESEND_DELAYS
from tests.support.tables import check_releases
from tests.support.unit.events import failures, plenty, sqs_event
from tests.support.unit.fakes import FakeAdapter, Meddler
from tests.support.unit.shared import (
    BUCKET,
    CONTENTS,
    LEASE,
    LEDGER,
    PREFERENCES,
    SUPPRESSIONS,
    TTL,
    Aws,
    FakeClock,
    Item,
)

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
    "resend_delays": RESEND_DELAYS,
    "backoff_seconds": 4,
    "backoff_cap_seconds": 600,
    "misconfigured_seconds": 20,
    "submit_seconds": 10,
    "record_seconds": 5,
}
TABLES = {"contents_table": CONTENTS, "suppressions_table": SUPPRESSIONS, "preferences_table": PREFERENCES}


def tools_of(
    settings: Sender,
    aws: Aws,
    clock: FakeClock,
    sqs: Any,
    *,
    dynamodb: Any = None,
    recipients: Any = None,
    jitter: float | Callable[[], float] = 1.0,
) -> Tools:
    """Build a worker's tools. `dynamodb` is the ledger's client, and `recipients` that of the suppression
    list and of the budgets, if a test changes their calls."""
    return Tools(
        Ledger(
            dynamodb or aws.dynamodb,
            LEDGER,
            lease=settings.lease_seconds,
            ttl=settings.ledger_ttl_seconds,
            clock=clock,
        ),
        Payloads(aws.s3, BUCKET),
        recipients or aws.dynamodb,
        sqs,
        Pace.of(settings, clock, clock.sleep),
        clock,
        clock.sleep,
        jitter if callable(jitter) else lambda: jitter,
    )


class Visibilities(Meddler):
    """SQS as a client that records visibilities instead of setting them."""

    def __init__(self, client: Any, **changes: Callable[..., Any]) -> None:
        super().__init__(client, change_message_visibility_batch=lambda _real, **_arguments: {}, **changes)

    @property
    def waits(self) -> dict[str, int]:
        """The visibilities in seconds, by record."""
        return {
            entry["ReceiptHandle"].replace("receipt", "r"): entry["VisibilityTimeout"]
            for name, call in self.calls
            if name == "change_message_visibility_batch"
            for entry in call["Entries"]
        }


class WorkerPost:
    """Worker, and the visibilities that it sets in its queue."""

    def __init__(self, aws: Aws) -> None:
        self._aws = aws
        self._sqs = Visibilities(aws.sqs)
        self._worker: Worker

    def handle(
        self,
        *bodies: str | Item,
        receives: int | Sequence[int] = 1,
        remaining: Callable[[], int] = plenty,
        waited: Mapping[str, float] = MappingProxyType({}),
        knows_first_receive: bool = True,
    ) -> dict[str, int]:
        """Handle a batch, and return the records that come back, with their visibilities in seconds.

        `receives`: number of receives of all records, or of each. `waited`: places of the messages that have
        waited (when they were put, in epoch seconds), by their id. `knows_first_receive`: whether the records
        have the time of their first receive.
        """
        self._sqs.calls.clear()
        event = sqs_event(*bodies, receives=receives)
        for record, body in zip(event["Records"], bodies, strict=True):
            if isinstance(body, dict) and body.get("id") in waited:
                place = {"stringValue": str(int(waited[body["id"]])), "dataType": "String"}
                record["messageAttributes"] = {PUT_AT: place, DUE_AT: place}
            if not knows_first_receive:
                del record["attributes"]["ApproximateFirstReceiveTimestamp"]
        returned = failures(self._worker.handle(event, remaining))
        assert list(self._sqs.waits) == returned
        check_releases(self._aws.dynamodb, LEDGER)
        return self._sqs.waits

    @property
    def visibilities(self) -> dict[str, int]:
        """Visibilities in seconds that the worker has set since the last batch began, by record."""
        return self._sqs.waits

    def forget_visibilities(self) -> None:
        self._sqs.calls.clear()


class Post(WorkerPost):
    """Worker with a fake adapter."""

    def __init__(
        self,
        aws: Aws,
        clock: FakeClock,
        adapter: FakeAdapter,
        dynamodb: Any = None,
        jitter: float | Callable[[], float] = 1.0,
        suppressions: Suppressions | None = None,
        budgets: Any = None,
        **changes: Any,
    ) -> None:
        super().__init__(aws)
        self.adapter = adapter
        settings = SuppressingSender(**{**SETTINGS, **TABLES, **changes})
        client = suppressions.client if suppressions else budgets
        tools = tools_of(settings, aws, clock, self._sqs, dynamodb=dynamodb, recipients=client, jitter=jitter)
        delivery = to_people if suppressions else Delivery
        self.delivery = delivery(settings, adapter, tools)
        self._worker = Worker(settings.queue_url, tools, self.delivery, settings.submits_at_once)

    @property
    def submitted(self) -> list[str]:
        return [message.id for message in self.adapter.submitted]


Make = Callable[..., Post]


@pytest.fixture
def make_post(aws: Aws, clock: FakeClock) -> Make:
    def make(
        *outcomes: Any, evidence: Any = None, prepare: Any = None, contract: Any = Mail, **changes: Any
    ) -> Post:
        outcomes = outcomes or (Sent("p-1"),)
        adapter = FakeAdapter(*outcomes, evidence=evidence, prepare=prepare, contract=contract)
        return Post(aws, clock, adapter, **changes)

    return make
