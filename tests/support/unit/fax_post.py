"""A fax worker whose provider's responses a test sets."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.fax.adapter import FaxAdapter
from mailroom.channels.fax.contract import Delivered
from mailroom.channels.fax.delivery import FaxDelivery
from mailroom.content.payloads import Payloads
from mailroom.delivery.worker import Worker
from mailroom.environment import FaxSender
from mailroom.ledger.ledger import Ledger
from tests.support.tables import check_releases
from tests.support.unit.events import failures, sqs_event
from tests.support.unit.fax import FAX_LEASE, FAX_SETTINGS, LINE, FakeLine
from tests.support.unit.post import Visibilities, tools_of
from tests.support.unit.shared import BUCKET, LEDGER, TTL, Aws, FakeClock, Item

FUNCTION_SECONDS = 900.0


def fax_adapter_at(line: FakeLine, aws: Aws, **changes: Any) -> FaxAdapter:
    settings = FaxSender(**{**FAX_SETTINGS, "fax_provider": "fake", **changes})
    return FaxAdapter(settings, lambda: line, Payloads(aws.s3, BUCKET))


class FaxPost:
    """A fax worker with its provider. An invocation has FUNCTION_SECONDS; sleeping uses them up."""

    def __init__(
        self,
        aws: Aws,
        clock: FakeClock,
        line: FakeLine,
        dynamodb: Any = None,
        sqs: Visibilities | None = None,
        **changes: Any,
    ) -> None:
        self._aws = aws
        self.line = line
        self.clock = clock
        self._sqs = sqs or Visibilities(aws.sqs)
        settings = FaxSender(**{**FAX_SETTINGS, "queue_url": aws.urls["fax.fifo"], **changes})
        tools = tools_of(settings, aws, clock, self._sqs, dynamodb=dynamodb)
        self.adapter = fax_adapter_at(line, aws)
        self._worker = Worker(settings.queue_url, tools, FaxDelivery(settings, self.adapter, tools))

    def handle(self, body: str | Item, *, receives: int = 1, group: str | None = LINE) -> int | None:
        """Handle one record. Return its visibility in seconds, or None if it does not come back."""
        ends = self.clock() + FUNCTION_SECONDS
        event = sqs_event(body, receives=receives)
        if group is not None:
            event["Records"][0]["attributes"]["MessageGroupId"] = group
        self._sqs.calls.clear()
        returned = failures(self._worker.handle(event, lambda: int((ends - self.clock()) * 1000)))
        assert list(self._sqs.waits) == returned
        check_releases(self._aws.dynamodb, LEDGER)
        return self._sqs.waits.get("r-0")


FaxMake = Callable[..., FaxPost]


@pytest.fixture
def fax_post(aws: Aws, clock: FakeClock) -> FaxMake:
    def make(line: FakeLine | None = None, **changes: Any) -> FaxPost:
        return FaxPost(aws, clock, line or FakeLine(Delivered()), **changes)

    return make


@pytest.fixture
def fax_ledger(aws: Aws, clock: FakeClock) -> Ledger:
    """The ledger of another fax worker."""
    return Ledger(aws.dynamodb, LEDGER, lease=FAX_LEASE, ttl=TTL, clock=clock)
