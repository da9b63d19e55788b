"""A webhook worker whose receivers' responses a test sets."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.webhook.delivery import WebhookDelivery
from mailroom.delivery.worker import Worker
from mailroom.environment import WebhookSender
from mailroom.errors import RequestFailed
from mailroom.http.https import Answer
from tests.support.unit.post import SETTINGS, WorkerPost, tools_of
from tests.support.unit.shared import LEDGER, Aws, FakeClock, Item
from tests.support.unit.webhooks import ARN, OVERLAP, Secrets, Wire, standard_webhooks

DELAYS = [5.0, 15.0, 30.0, 60.0, 7200.0]
LAST = len(DELAYS) + 1
WEBHOOK_SETTINGS: dict[str, Any] = {
    **SETTINGS,
    "channel": "webhook",
    "queue_url": "https://sqs.example/mailroom-test-webhook",
    "submit_seconds": 15,
    "signing_secret_arn": ARN,
    "signing_overlap_seconds": OVERLAP,
    "delays": DELAYS,
    "retry_after_cap_seconds": 3600,
    "allowed_networks": [],
    "allowed_schemes": ["https"],
    "allowed_ports": [443, 8443],
}


class WebhookPost(WorkerPost):
    """A worker with receivers and a secret."""

    def __init__(
        self, aws: Aws, clock: FakeClock, *answers: int | Answer | RequestFailed, jitter: float, dynamodb: Any
    ) -> None:
        super().__init__(aws)
        self.wire = Wire(*(answers or (200,)))
        self.secrets = Secrets()
        settings = WebhookSender(**WEBHOOK_SETTINGS)
        tools = tools_of(settings, aws, clock, self._sqs, dynamodb=dynamodb, jitter=jitter)
        delivery = WebhookDelivery(settings, standard_webhooks(self.wire, clock, self.secrets), tools)
        self._worker = Worker(settings.queue_url, tools, delivery)

    @property
    def ids(self) -> list[str]:
        """The webhook-ids of the requests."""
        return [headers["webhook-id"] for _, headers, _ in self.wire.posts]


MakeWebhooks = Callable[..., WebhookPost]


@pytest.fixture
def webhooks(aws: Aws, clock: FakeClock) -> MakeWebhooks:
    def make(
        *answers: int | Answer | RequestFailed, jitter: float = 0.0, dynamodb: Any = None
    ) -> WebhookPost:
        return WebhookPost(aws, clock, *answers, jitter=jitter, dynamodb=dynamodb)

    return make


def callback(**changes: Any) -> Item:
    """Return a callback as `outcomes` writes it; a change to `...` removes the attribute."""
    base: Item = {
        "webhook_id": "msg_f1",
        "url": "https://hooks.example/status?token=t",
        "id": "f-1",
        "event_type": "fax",
        "name": "retrying.3",
        "payload": {"fax_id": "f-1", "status": "tmp_fail", "timestamp": 1795251600},
    }
    return {name: value for name, value in {**base, **changes}.items() if value is not ...}


@pytest.fixture
def fax_in_ledger(aws: Aws) -> None:
    """Put the fax of the callbacks into the ledger."""
    aws.put(LEDGER, id="f-1", event_type="fax", status="retrying", callbacks={})
