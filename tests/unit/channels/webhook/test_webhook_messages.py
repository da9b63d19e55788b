"""A webhook that is a message of the mailbox: claimed, sent and recorded like messages of all channels."""

import pytest

from mailroom.errors import RequestFailed
from mailroom.http.https import Answer
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import BUCKET, Aws, Item
from tests.support.unit.webhook_post import DELAYS, LAST, MakeWebhooks, callback
from tests.support.unit.webhook_post import webhooks as webhooks
from tests.support.unit.webhooks import webhook_item

PRIVATE = "https://hooks.example/orders?token=t"


def test_a_delivered_webhook_is_recorded_and_its_queue_record_is_removed(
    webhooks: MakeWebhooks, aws: Aws, counted: Counted
) -> None:
    post = webhooks(202)
    assert post.handle(webhook_item()) == {}
    entry = aws.item("w-1", "webhook")
    assert (entry["status"], entry["provider"], entry["provider_id"]) == ("sent", "webhook", post.ids[0])
    assert entry["to"] == "hooks.example"
    assert counted() == {"Sent": 1}


def test_a_failed_webhook_is_retried_with_the_same_webhook_id_after_the_configured_delays(
    webhooks: MakeWebhooks, aws: Aws
) -> None:
    post = webhooks(503)
    waits = [post.handle(webhook_item(), receives=number)["r-0"] for number in range(1, LAST + 1)]
    assert waits == [5, 15, 30, 60, 7200, 0]
    assert len(post.ids) == LAST
    assert len(set(post.ids)) == 1
    assert "completedAt" not in aws.item("w-1", "webhook")


def test_jitter_shortens_the_delay_before_a_retry_by_a_fifth_at_most(webhooks: MakeWebhooks) -> None:
    post = webhooks(503, jitter=1.0)
    waits = [post.handle(webhook_item(), receives=number)["r-0"] for number in range(1, LAST + 1)]
    assert waits == [round(delay * 0.8) for delay in DELAYS] + [0]


@pytest.mark.parametrize(
    ("retry_after", "receives", "wait"), [(600, 1, 600), (600, 5, 7200), (9999, 1, 3600), (600, LAST, 0)]
)
def test_a_retry_after_header_longer_than_the_configured_delay_is_honoured_up_to_a_limit(
    webhooks: MakeWebhooks, retry_after: int, receives: int, wait: int
) -> None:
    answer = Answer(429, {"retry-after": str(retry_after)})
    assert webhooks(answer).handle(webhook_item(), receives=receives) == {"r-0": wait}


@pytest.mark.parametrize(
    ("answer", "item", "reason"),
    [
        (410, webhook_item(), "hooks.example answered 410 Gone"),
        (200, webhook_item(url="http://hooks.example/"), "url: has the scheme 'http'; use https"),
    ],
)
def test_a_webhook_with_a_forbidden_url_or_a_410_response_ends_as_failed(
    webhooks: MakeWebhooks, aws: Aws, answer: int, item: dict[str, str], reason: str
) -> None:
    assert webhooks(answer).handle(item) == {}
    entry = aws.item("w-1", "webhook")
    assert (entry["status"], entry["error"]) == ("failed", {"code": "rejected", "message": reason})


def test_a_webhook_is_sent_with_its_payload_from_the_payload_bucket(webhooks: MakeWebhooks, aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="w-1", Body=b'{"payload": {"lines": [1, 2]}}')
    post = webhooks()
    assert post.handle(webhook_item(payload=..., payload_ref=f"s3://{BUCKET}/w-1")) == {}
    assert post.wire.posts[0][2] == b'{"lines":[1,2]}'


@pytest.mark.parametrize(
    "body", [webhook_item(url=PRIVATE, payload="a body"), callback(url=PRIVATE, payload="a body")]
)
def test_the_log_contains_neither_the_path_and_query_of_a_webhooks_url_nor_the_payload(
    webhooks: MakeWebhooks, log: Log, body: Item
) -> None:
    post = webhooks(500, RequestFailed("did not answer in time"), 410)
    for receives in (1, 2, 3):
        post.handle(body, receives=receives)
    post.handle({**body, "url": "https://user:password@hooks.example/orders?token=t"})
    lines = str(log())
    assert "hooks.example answered 500" in lines
    assert not [text for text in ("orders", "token=", "a body", "password@") if text in lines]


def test_a_webhook_with_a_too_deeply_nested_payload_does_not_stop_other_webhooks_of_its_batch(
    webhooks: MakeWebhooks,
) -> None:
    deep = '{"id": "w-2", "event_type": "webhook", "url": "https://hooks.example/1", "payload": %s}'
    for levels in (600, 800, 900):
        post = webhooks()
        before, after = (webhook_item(id=f"{id_}-{levels}") for id_ in ("a", "b"))
        assert post.handle(before, deep % ("[" * levels + "]" * levels), after) == {"r-1": 0}
        assert len(post.ids) == 2
