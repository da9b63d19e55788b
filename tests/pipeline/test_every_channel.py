"""Properties of each channel: contents of the payload bucket, topics, copies, batches, and unreadable
bodies."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from lab.harness.expected import Item
from mailroom.recipients.choices import Suppressions
from tests.support.pipeline.items import UNREADABLE, fax_item, mail_item
from tests.support.pipeline.shared import Pipeline, until

SECONDS = 40.0
SOON_SECONDS = 5
WAITING = "every-soon"
TOPIC = "arn:aws:sns:us-east-1:000000000000:mailroom-local-news"
UNSUBSCRIBED = "+12125550142"
CONTENTS: dict[str, Item] = {
    "mail": {"subject": "From the bucket", "text": "Words of a mail"},
    "sms": {"text": "Words of a text"},
    "push": {"title": "Words of a push"},
    "webhook": {"payload": {"words": "of a webhook"}},
}
QUEUES = ("Push", "FaxRetry", "Collect", "Audience")
"""Queues into which only this test puts an unreadable body."""


def messages(pipeline: Pipeline) -> list[Item]:
    """A message on each channel whose content is an object; some have a topic that people may opt out of."""
    bucket = pipeline.output("PayloadBucketName")
    for channel, content in CONTENTS.items():
        pipeline.s3.put_object(Bucket=bucket, Key=f"every/{channel}", Body=json.dumps(content).encode())
    to: dict[str, Item] = {
        "mail": {**mail_item("every", first_name=None, last_name=None), "lane": "bulk"},
        "sms": {"to": "+12125550179", "topic": "news"},
        "push": {"to": "ab" * 32, "platform": "ios", "topic": "news"},
        "webhook": {"url": pipeline.receiver("ok/messages/every")},
    }
    ref = f"s3://{bucket}/every"
    return [
        {**item, "id": "every", "event_type": channel, "payload_ref": f"{ref}/{channel}"}
        for channel, item in to.items()
    ]


@pytest.fixture(scope="module")
def ended_messages(pipeline: Pipeline) -> list[Item]:
    """Return the messages and a fax, which have ended, and so have their copies. Another fax and its copy
    wait for their time."""
    soon = (datetime.now(UTC) + timedelta(seconds=SOON_SECONDS)).isoformat()
    waiting = fax_item(WAITING, "+13125550147", send_at=soon)
    items = [*messages(pipeline), fax_item("every", "+13125550146")]
    pipeline.put(waiting, *items)
    _copy(pipeline, waiting, SOON_SECONDS)
    for item in items:
        pipeline.until_ended("every", event_type=item["event_type"], seconds=SECONDS)
        _copy(pipeline, item)
    for name in ("MailBulk", "Sms", "Push", "Webhook", "FaxRetry", "Fax"):
        _until_empty(pipeline, pipeline.output(f"{name}QueueUrl"))
    return items


def _until_empty(pipeline: Pipeline, url: str) -> None:
    until(lambda: pipeline.queue_is_empty(url), SECONDS, lambda: f"{url} is not empty")


def _copy(pipeline: Pipeline, item: Item, delay: int = 0) -> None:
    """Queue a message once more, as after a crash between the queue and the ledger."""
    names = {"mail": "MailBulk", "fax": "FaxRetry"}
    name = names.get(item["event_type"], item["event_type"].title())
    url = pipeline.output(f"{name}QueueUrl")
    pipeline.sqs.send_message(QueueUrl=url, MessageBody=json.dumps(item), DelaySeconds=delay)


def test_a_message_with_content_in_s3_is_sent_once_on_each_channel_despite_a_second_queue_message(
    pipeline: Pipeline, ended_messages: list[Item]
) -> None:
    for item in ended_messages:
        assert pipeline.ledger("every", item["event_type"])["status"] in ("sent", "delivered")
    taken = [str(each["content"]) for each in pipeline.accepted()]
    for words in ("Words of a mail", "Words of a text", "Words of a push"):
        assert len([each for each in taken if words in each]) == 1
    (request,) = pipeline.received("messages", "every")
    assert json.loads(request["body"]) == CONTENTS["webhook"]["payload"]
    assert len(pipeline.calls("every")) == 1


def test_each_push_of_one_batch_to_devices_and_an_sns_topic_is_sent_once(pipeline: Pipeline) -> None:
    devices = [{"to": f"device-together-{number}", "platform": "android"} for number in range(9)]
    items = [
        {"id": f"together-{at}", "event_type": "push", "title": f"together-{at}", **to}
        for at, to in enumerate([*devices, {"to": TOPIC}])
    ]
    pipeline.send(pipeline.output("PushQueueUrl"), map(json.dumps, items))
    pipeline.until_ended(*(str(item["id"]) for item in items), event_type="push", seconds=SECONDS)
    titles = [each["content"]["subject"] for each in pipeline.accepted() if each["channel"] == "push"]
    assert sorted(each for each in titles if each.startswith("together-")) == [item["id"] for item in items]


def test_a_number_that_is_unsubscribed_at_twilio_is_suppressed(pipeline: Pipeline) -> None:
    item = {"id": "unsubscribed", "event_type": "sms", "to": UNSUBSCRIBED, "text": "Hello"}
    pipeline.put(item)
    pipeline.until_status("suppressed", "unsubscribed", event_type="sms", seconds=SECONDS)
    marked = Suppressions(pipeline.dynamodb, pipeline.output("SuppressionsTableName"))
    assert marked.find("sms", [UNSUBSCRIBED])[UNSUBSCRIBED].reason == "stop"


def test_an_unreadable_body_in_the_queue_of_any_channel_soon_becomes_a_dead_letter(
    pipeline: Pipeline,
) -> None:
    for name in QUEUES:
        pipeline.send(pipeline.output(f"{name}QueueUrl"), [UNREADABLE])

    def alive() -> list[str]:
        return [
            name
            for name in QUEUES
            if UNREADABLE not in pipeline.dead_letters(pipeline.output(f"{name}DlqUrl"))
        ]

    until(lambda: not alive(), SECONDS, lambda: f"not dead: {alive()}")


@pytest.mark.usefixtures("ended_messages")
def test_a_fax_that_waits_for_its_send_at_is_sent_once_despite_a_second_queue_message(
    pipeline: Pipeline,
) -> None:
    pipeline.until_ended(WAITING, event_type="fax", seconds=SECONDS)
    _until_empty(pipeline, pipeline.output("FaxRetryQueueUrl"))
    assert len(pipeline.calls(WAITING)) == 1


def test_a_follow_up_on_any_channel_is_cancelled_if_its_first_message_was_sent(
    pipeline: Pipeline, ended_messages: list[Item]
) -> None:
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    unless = {"id": "every", "event_type": "mail", "status": ["sent", "delivered"]}
    items = [*messages(pipeline), mail_item("every"), fax_item("every", "+13125550146")]
    follow_ups = [
        {**item, "id": f"follow-up-{item.get('lane', 'normal')}", "send_at": past, "unless": unless}
        for item in items
    ]
    pipeline.put(*follow_ups)
    for item in follow_ups:
        key = item["id"], item["event_type"]
        pipeline.until_ended(key[0], event_type=key[1], seconds=SECONDS)
        row = pipeline.ledger(*key)
        assert (row["status"], row["error"]["code"]) == ("cancelled", "unless"), key
