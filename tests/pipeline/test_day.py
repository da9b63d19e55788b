"""What the day has no room for, or is outside of its window, on the whole stage: it waits with content."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from mailroom.message.message import Held
from mailroom.message.window import DAYS
from tests.pipeline.test_send_at import GROUP, schedules
from tests.support.pipeline.campaign import Campaign, signed
from tests.support.pipeline.items import mail
from tests.support.pipeline.shared import Pipeline, until

BUDGETS = "mailroom-local-budgets"
BULK = 12


@contextmanager
def closed(pipeline: Pipeline, seconds: float) -> Iterator[None]:
    """The day is closed for bulk for so long, as if SES had said that it is used up."""
    key = {"name": {"S": "mail"}}
    until_ = {":until": {"N": str(int(time.time() + seconds))}}
    pipeline.dynamodb.update_item(
        TableName=BUDGETS,
        Key=key,
        UpdateExpression="SET closed_until = :until",
        ExpressionAttributeValues=until_,
    )
    try:
        yield
    finally:
        pipeline.dynamodb.update_item(
            TableName=BUDGETS, Key=key, UpdateExpression="REMOVE closed_until, line_until"
        )


def waits(pipeline: Pipeline, id_: str) -> bool:
    """Whether the ledger says that it waits for the day's quota."""
    row = pipeline.ledger(id_)
    return row.get("status") == "scheduled" and row["trouble"]["code"] == "day_used_up"


def take_back(pipeline: Pipeline, id_: str) -> None:
    """The producer deletes its item."""
    key = {"id": {"S": id_}, "event_type": {"S": "mail"}}
    pipeline.dynamodb.delete_item(TableName="mailroom-local-mailbox", Key=key)


def test_bulk_that_the_day_has_no_room_for_goes_out_once_at_its_slots(pipeline: Pipeline) -> None:
    ids = [f"over-{at}" for at in range(BULK)]
    with closed(pipeline, 15):
        pipeline.put_batch([mail(id_, lane="bulk") for id_ in ids])
        until(lambda: waits(pipeline, ids[0]), 14, lambda: f"does not wait: {pipeline.ledger(ids[0])}")
        pipeline.until_ended(*ids)
    for id_ in ids:
        assert "trouble" not in pipeline.ledger(id_)
        pipeline.one_mail(id_)


def test_a_campaign_that_the_day_has_no_room_for_says_so_and_goes_out_once_when_there_is(
    pipeline: Pipeline,
) -> None:
    campaign = Campaign(pipeline, "over-the-day")

    def trouble() -> str:
        return campaign.state().trouble if campaign.state_or_none() else ""

    with closed(pipeline, 12):
        campaign.start()
        until(lambda: "it waits for the day's quota of mail" in trouble(), 11, lambda: f"{trouble()!r}")
        until(lambda: campaign.state().state == "collected", 60, lambda: f"{campaign.state()}")
        campaign.until_ended()
    assert {id_: len(sent) for id_, sent in campaign.mails().items()} == dict.fromkeys(campaign.expected, 1)
    assert not pipeline.dead_letters(pipeline.output("CollectDlqUrl"))


def test_a_message_that_waits_for_hours_is_in_its_schedule_and_sent_even_if_its_item_is_deleted(
    pipeline: Pipeline,
) -> None:
    before = schedules(pipeline)
    with closed(pipeline, 3_600):
        pipeline.put(mail("over-far", lane="bulk", first_name="Grace"))
        until(lambda: waits(pipeline, "over-far"), 20, lambda: f"{pipeline.ledger('over-far')}")
        pipeline.put(mail("code-beside"))
        pipeline.one_mail("code-beside")
    (name,) = schedules(pipeline) - before
    held = json.loads(pipeline.scheduler.get_schedule(GroupName=GROUP, Name=name)["Target"]["Input"])
    take_back(pipeline, "over-far")
    pipeline.scheduler.delete_schedule(GroupName=GROUP, Name=name)  # and its time comes
    due = Held(held["item"], time.time() - 1, in_line=True).body
    pipeline.send(pipeline.output("ScheduledQueueUrl"), [due, due])
    assert "Grace" in pipeline.one_mail("over-far")["content"]["text"]


def test_a_code_that_ses_takes_no_more_today_waits_and_costs_no_try(pipeline: Pipeline) -> None:
    expires = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(time.time() + 5))}Z"
    with closed(pipeline, 1):
        pipeline.put(mail("used-up", email="used-up@simulator.amazonses.com", expires_at=expires))
        until(lambda: "trouble" in pipeline.ledger("used-up"), 20, lambda: f"{pipeline.ledger('used-up')}")
        assert pipeline.ledger("used-up")["trouble"]["code"] == "day_used_up"
        assert pipeline.failure("used-up") == f"expires_at: {expires} is past"
    assert not pipeline.dead_letters(pipeline.output("MailDlqUrl"))


def test_what_is_outside_of_its_window_waits_and_can_be_taken_back(pipeline: Pipeline) -> None:
    later = DAYS[(datetime.now(UTC).weekday() + 2) % 7]
    window = {"from": "09:00", "to": "10:00", "days": later, "zone": "Europe/Berlin"}
    about = {"id": "night", "window": window}
    pipeline.put(about | {"event_type": "sms", "to": "+16175551234", "text": "Hi"})
    pipeline.put(about | {"event_type": "push", "to": "token-1", "platform": "android", "body": "Hi"})
    for channel in ("sms", "push"):

        def waits(channel: str = channel) -> bool:
            row = pipeline.ledger("night", channel)
            return row.get("status") == "scheduled" and row["trouble"]["code"] == "outside_window"

        until(waits, 20, lambda: f"{pipeline.ledger('night', 'sms')} {pipeline.ledger('night', 'push')}")
        url = f"{pipeline.output('ApiUrl')}/messages/night/cancel?event_type={channel}"
        assert json.loads(signed("POST", url, b"{}").body)["status"] == "cancelled"
