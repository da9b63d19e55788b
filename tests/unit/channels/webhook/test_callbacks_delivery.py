"""Status callbacks of the webhook queue: sent at least once, without a claim; results are in the ledger."""

from typing import Any

import pytest

from mailroom.errors import RequestFailed
from tests.support.unit.events import lines_about
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import NOW_MS, Aws
from tests.support.unit.webhook_post import DELAYS, LAST, MakeWebhooks, callback
from tests.support.unit.webhook_post import fax_in_ledger as fax_in_ledger
from tests.support.unit.webhook_post import webhooks as webhooks
from tests.support.unit.webhooks import webhook_item

pytestmark = pytest.mark.usefixtures("fax_in_ledger")


def results_in_ledger(aws: Aws) -> Any:
    return aws.item("f-1", "fax")["callbacks"]


def test_a_delivered_callback_is_recorded_and_leaves_the_queue(
    webhooks: MakeWebhooks, aws: Aws, counted: Counted
) -> None:
    post = webhooks(204)
    assert post.handle(callback(), receives=3) == {}
    ((target, headers, body),) = post.wire.posts
    assert (target.path_and_query, headers["webhook-id"]) == ("/status?token=t", "msg_f1")
    assert body == b'{"fax_id":"f-1","status":"tmp_fail","timestamp":1795251600}'
    assert results_in_ledger(aws) == {
        "retrying.3": {"status": "delivered", "at": NOW_MS, "code": 204, "tries": 3}
    }
    assert counted() == {"CallbacksDelivered": 1}


def test_a_callback_is_sent_each_time_its_queue_record_is_received(webhooks: MakeWebhooks) -> None:
    post = webhooks()
    for _ in range(2):
        assert post.handle(callback()) == {}
    assert post.ids == ["msg_f1", "msg_f1"]


def test_a_webhook_message_is_sent_even_after_a_callback_about_the_message(
    webhooks: MakeWebhooks, aws: Aws
) -> None:
    post = webhooks()
    assert post.handle(callback(id="w-1", event_type="webhook"), webhook_item()) == {}
    assert len(post.ids) == 2
    assert aws.item("w-1", "webhook")["status"] == "sent"


@pytest.mark.parametrize("answer", [500, 302, 404, RequestFailed("did not answer in time")])
def test_a_failed_callback_is_retried_after_the_configured_delays_and_not_recorded(
    webhooks: MakeWebhooks, aws: Aws, counted: Counted, answer: int | RequestFailed
) -> None:
    post = webhooks(answer)
    waits = [post.handle(callback(), receives=number)["r-0"] for number in range(1, LAST)]
    assert waits == DELAYS
    assert results_in_ledger(aws) == {}
    assert counted() == {"CallbacksRetried": len(DELAYS), "WebhooksFailing": 2}
    assert set(post.ids) == {"msg_f1"}


@pytest.mark.parametrize(("answer", "code"), [(500, 500), (RequestFailed("did not answer in time"), None)])
def test_after_the_last_failed_try_a_callback_is_recorded_and_goes_to_the_dead_letter_queue(
    webhooks: MakeWebhooks, aws: Aws, answer: int | RequestFailed, code: int | None
) -> None:
    assert webhooks(answer).handle(callback(), receives=LAST) == {"r-0": 0}
    result = results_in_ledger(aws)["retrying.3"]
    reason = "answered 500" if code else "did not answer"
    assert result.pop("reason").startswith(f"hooks.example {reason}")
    assert result == {"status": "failed", "at": NOW_MS, "code": code, "tries": LAST}


@pytest.mark.parametrize(
    ("answer", "url", "code", "reason"),
    [
        (410, "https://hooks.example/", 410, "hooks.example answered 410"),
        (200, "https://10.0.0.1/", None, "url: "),
        (200, "https://a:b@c.example/", None, "url: "),
    ],
)
def test_a_callback_with_a_forbidden_url_or_a_410_response_is_not_retried(
    webhooks: MakeWebhooks, aws: Aws, counted: Counted, answer: int, url: str, code: int | None, reason: str
) -> None:
    assert webhooks(answer).handle(callback(url=url)) == {}
    result = results_in_ledger(aws)["retrying.3"]
    assert result.pop("reason").startswith(reason)
    assert result == {"status": "failed", "at": NOW_MS, "code": code, "tries": 1}
    assert counted() == {"CallbacksRefused": 1}


def test_a_delivered_callback_leaves_the_queue_even_if_it_cannot_be_recorded(
    webhooks: MakeWebhooks, aws: Aws, log: Log
) -> None:
    down = Meddler(aws.dynamodb, update_item=failing(client_error("InternalServerError", status=500)))
    assert webhooks(dynamodb=down).handle(callback()) == {}
    (line,) = lines_about(log(), "a callback's result was not recorded")
    assert (line["level"], line["callback"]) == ("ERROR", "retrying.3")


def test_a_callback_whose_failure_cannot_be_recorded_is_retried(webhooks: MakeWebhooks, aws: Aws) -> None:
    down = Meddler(aws.dynamodb, update_item=failing(client_error("InternalServerError", status=500)))
    post = webhooks(410, dynamodb=down)
    assert post.handle(callback()) == {"r-0": 5}
    assert post.handle(callback(), receives=2) == {}
    assert results_in_ledger(aws)["retrying.3"]["status"] == "failed"


def test_without_a_signing_key_a_callback_is_not_sent_and_is_retried_soon(
    webhooks: MakeWebhooks, aws: Aws, counted: Counted
) -> None:
    post = webhooks()
    post.secrets.values["AWSCURRENT"] = ("changeme", 0)
    assert post.handle(callback()) == {"r-0": 20}
    assert post.handle(callback(), receives=LAST) == {"r-0": 0}
    assert (counted(), post.ids) == ({"Misconfigured": 2}, [])
    assert results_in_ledger(aws)["retrying.3"]["status"] == "failed"


def test_a_callback_is_not_sent_if_the_function_has_too_little_time_left(webhooks: MakeWebhooks) -> None:
    post = webhooks()
    assert post.handle(callback(), remaining=lambda: 20_000) == {"r-0": 0}
    assert post.ids == []


@pytest.mark.parametrize(
    "changes",
    [
        {"url": ...},
        {"payload": ...},
        {"name": ...},
        {"name": ""},
        {"id": ...},
        {"event_type": 7},
        {"webhook_id": ""},
        {"webhook_id": "msg_1\r\nX: y"},
        {"webhook_id": "msg_1\n"},
        {"webhook_id": "msg.1"},
        {"webhook_id": None},
    ],
)
def test_a_malformed_callback_goes_to_the_dead_letter_queue_at_once_and_is_not_sent(
    webhooks: MakeWebhooks, counted: Counted, changes: dict[str, Any]
) -> None:
    post = webhooks()
    assert post.handle(callback(**changes), callback()) == {"r-0": 0}
    assert (counted()["Malformed"], post.ids) == (1, ["msg_f1"])
