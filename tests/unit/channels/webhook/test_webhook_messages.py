"""A webhook that is a message of the mailbox: claimed, sent, recorded like any other."""

import pytest

from mailroom.errors import RequestFailed
from mailroom.http.https import Answer
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import BUCKET, LEASE, LEDGER, NOW_MS, Aws
from tests.support.unit.webhook_post import DELAYS, LAST, MakeWebhooks
from tests.support.unit.webhook_post import webhooks as webhooks
from tests.support.unit.webhooks import webhook_item


def test_a_delivered_message_is_recorded_and_its_record_is_done(
    webhooks: MakeWebhooks, aws: Aws, counted: Counted
) -> None:
    post = webhooks(202)
    assert post.handle(webhook_item()) == {}
    found = aws.item("w-1", "webhook")
    assert (found["status"], found["provider"], found["provider_id"]) == ("sent", "webhook", post.ids[0])
    assert found["to"] == "hooks.example"
    assert counted() == {"Sent": 1}


def test_a_message_is_sent_once_however_often_its_record_comes(webhooks: MakeWebhooks) -> None:
    post = webhooks()
    for _ in range(3):
        assert post.handle(webhook_item()) == {}
    assert len(post.ids) == 1


def test_a_failed_try_comes_back_by_the_written_down_delays_under_the_same_id(
    webhooks: MakeWebhooks, aws: Aws
) -> None:
    post = webhooks(503)
    waits = [post.handle(webhook_item(), receives=at)["r-0"] for at in range(1, LAST + 1)]
    assert waits == [5, 15, 30, 60, 7200, 0]
    assert len(post.ids) == LAST
    assert len(set(post.ids)) == 1
    assert "completedAt" not in aws.item("w-1", "webhook")


def test_chance_shortens_a_delay_by_a_fifth_at_most(webhooks: MakeWebhooks) -> None:
    post = webhooks(503, jitter=1.0)
    waits = [post.handle(webhook_item(), receives=at)["r-0"] for at in range(1, LAST + 1)]
    assert waits == [round(each * 0.8) for each in DELAYS] + [0]


@pytest.mark.parametrize(
    ("asked", "receives", "wait"), [(600, 1, 600), (600, 5, 7200), (9999, 1, 3600), (600, LAST, 0)]
)
def test_a_longer_retry_after_is_honoured_within_bounds(
    webhooks: MakeWebhooks, asked: int, receives: int, wait: int
) -> None:
    answer = Answer(429, {"retry-after": str(asked)})
    assert webhooks(answer).handle(webhook_item(), receives=receives) == {"r-0": wait}


@pytest.mark.parametrize(
    ("answer", "item", "reason"),
    [
        (410, webhook_item(), "hooks.example answered 410 Gone"),
        (200, webhook_item(url="http://hooks.example/"), "url: has the scheme 'http'; use https"),
    ],
)
def test_what_is_gone_or_must_not_be_asked_is_failed(
    webhooks: MakeWebhooks, aws: Aws, answer: int, item: dict[str, str], reason: str
) -> None:
    assert webhooks(answer).handle(item) == {}
    found = aws.item("w-1", "webhook")
    assert (found["status"], found["error"]) == ("failed", {"code": "rejected", "message": reason})


def test_a_payload_of_the_bucket_is_what_goes_out(webhooks: MakeWebhooks, aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="w-1", Body=b'{"payload": {"lines": [1, 2]}}')
    post = webhooks()
    assert post.handle(webhook_item(payload=..., payload_ref=f"s3://{BUCKET}/w-1")) == {}
    assert post.wire.posts[0][2] == b'{"lines":[1,2]}'


def test_a_payload_of_the_bucket_without_a_payload_is_failed(webhooks: MakeWebhooks, aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="w-1", Body=b'{"lines": [1, 2]}')
    post = webhooks()
    assert post.handle(webhook_item(payload=..., payload_ref=f"s3://{BUCKET}/w-1")) == {}
    assert aws.item("w-1", "webhook")["error"]["message"].startswith("payload: is missing")
    assert post.ids == []


def test_after_a_crash_it_is_sent_again_under_the_same_id(webhooks: MakeWebhooks, aws: Aws) -> None:
    lost = NOW_MS - int(LEASE * 1000) - 1
    aws.put(LEDGER, id="w-1", event_type="webhook", status="sending", startedAt=lost, claim_token="gone")
    post = webhooks()
    assert post.handle(webhook_item(), receives=2) == {}
    assert aws.item("w-1", "webhook")["status"] == "sent"
    assert post.ids == [aws.item("w-1", "webhook")["provider_id"]]


def test_the_log_names_neither_path_nor_query_nor_payload(webhooks: MakeWebhooks, log: Log) -> None:
    post = webhooks(500, RequestFailed("did not answer in time"), 410)
    for receives in (1, 2, 3):
        post.handle(webhook_item(payload="a body"), receives=receives)
    lines = str(log())
    assert "hooks.example answered 500" in lines
    assert not [each for each in ("orders", "token=", "a body") if each in lines]


def test_a_payload_of_too_many_levels_keeps_no_neighbour_from_being_sent(webhooks: MakeWebhooks) -> None:
    deep = '{"id": "w-2", "event_type": "webhook", "url": "https://hooks.example/1", "payload": %s}'
    for levels in (600, 800, 900):
        post = webhooks()
        good = [webhook_item(id=f"{id_}-{levels}") for id_ in ("a", "b")]
        assert post.handle(good[0], deep % ("[" * levels + "]" * levels), good[1]) == {"r-1": 0}
        assert len(post.ids) == 2
