"""An endpoint that keeps failing is said long before its webhooks are dead letters."""

import pytest

from mailroom.webhook_delivery import KEEPS_FAILING
from tests.unit.events import lines_about
from tests.unit.post import Counted, Log
from tests.unit.support import LEDGER, Aws, Item
from tests.unit.webhook_post import MakeWebhooks, callback
from tests.unit.webhook_post import webhooks as webhooks
from tests.unit.webhooks import webhook_item

LINE = "an endpoint keeps failing"


@pytest.fixture(autouse=True)
def _fax(aws: Aws) -> None:
    aws.put(LEDGER, id="f-1", event_type="fax", status="retrying", callbacks={})


@pytest.mark.parametrize("body", [callback(), webhook_item()], ids=["callback", "message"])
def test_an_endpoint_that_keeps_failing_is_counted_and_named(
    webhooks: MakeWebhooks, body: Item, counted: Counted, log: Log
) -> None:
    webhooks(503).handle(body, receives=KEEPS_FAILING + 1)
    assert counted()["WebhooksFailing"] == 1
    (line,) = lines_about(log(), LINE)
    assert (line["host"], line["tries"], line["level"]) == ("hooks.example", KEEPS_FAILING + 1, "WARNING")


@pytest.mark.parametrize("body", [callback(), webhook_item()], ids=["callback", "message"])
def test_the_first_failures_are_nobody_s_alarm(
    webhooks: MakeWebhooks, body: Item, counted: Counted, log: Log
) -> None:
    webhooks(503).handle(body, receives=KEEPS_FAILING)
    assert "WebhooksFailing" not in counted()
    assert lines_about(log(), LINE) == []


def test_one_that_answers_at_last_is_no_failure(webhooks: MakeWebhooks, counted: Counted) -> None:
    webhooks(200).handle(callback(), receives=KEEPS_FAILING + 5)
    assert counted() == {"CallbacksDelivered": 1}
