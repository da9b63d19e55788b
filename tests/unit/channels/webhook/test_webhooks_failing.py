"""An endpoint that keeps failing is reported long before its webhooks are dead letters."""

import pytest

from mailroom.channels.webhook.contract import KEEPS_FAILING, tries_that_may_fail
from tests.support.unit.events import lines_about
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import Item
from tests.support.unit.webhook_post import LAST, MakeWebhooks, callback
from tests.support.unit.webhook_post import fax_in_ledger as fax_in_ledger
from tests.support.unit.webhook_post import webhooks as webhooks
from tests.support.unit.webhooks import webhook_item

pytestmark = pytest.mark.usefixtures("fax_in_ledger")

LINE = "an endpoint keeps failing"
MAY_FAIL = LAST // 2
"""Tries that may fail before the report, for a worker with few tries."""


@pytest.mark.parametrize("body", [callback(), webhook_item()], ids=["callback", "message"])
def test_an_endpoint_is_logged_and_counted_as_failing_after_more_than_half_of_the_tries_failed(
    webhooks: MakeWebhooks, body: Item, counted: Counted, log: Log
) -> None:
    post = webhooks(503)
    post.handle(body, receives=MAY_FAIL)
    assert "WebhooksFailing" not in counted()
    assert lines_about(log(), LINE) == []
    post.handle(body, receives=MAY_FAIL + 1)
    assert counted()["WebhooksFailing"] == 1
    (line,) = lines_about(log(), LINE)
    assert (line["host"], line["tries"], line["level"]) == ("hooks.example", MAY_FAIL + 1, "WARNING")


def test_an_endpoint_that_accepts_the_last_try_is_not_counted_as_failing(
    webhooks: MakeWebhooks, counted: Counted
) -> None:
    webhooks(200).handle(callback(), receives=LAST)
    assert counted() == {"CallbacksDelivered": 1}


@pytest.mark.parametrize(
    ("tries", "may_fail"), [(2, 1), (3, 1), (8, 4), (15, 7), (16, KEEPS_FAILING), (20, KEEPS_FAILING)]
)
def test_half_of_a_webhooks_tries_but_at_most_eight_may_fail_before_its_endpoint_is_reported(
    tries: int, may_fail: int
) -> None:
    assert tries_that_may_fail(tries) == may_fail
