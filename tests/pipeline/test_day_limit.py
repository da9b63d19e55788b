"""Messages over the daily limit, or outside of their window, on the whole stage: they wait with their
content."""

import json
import time
from datetime import UTC, datetime

from mailroom.message.window import DAYS
from tests.support.pipeline.campaign import Campaign, signed_reply
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import Pipeline, until

BULK = 12


def test_bulk_mails_above_the_daily_limit_wait_and_each_is_sent_once_when_the_limit_allows_it(
    pipeline: Pipeline,
) -> None:
    ids = [f"over-{at}" for at in range(BULK)]
    deleted, *_ = ids
    with pipeline.release_stopped(), pipeline.day_closed(3_600):
        # An older process may have room left that it was granted before.
        pipeline.restart(pipeline.output("SendMailBulkFunctionName"))
        pipeline.put_batch([mail_item(id_, lane="bulk", first_name="Grace") for id_ in ids])
        pipeline.until_waits("day_used_up", *ids)
        assert {pipeline.ledger(id_)["waits_in"].rpartition("#")[0] for id_ in ids} == {"line#mail"}
        pipeline.put(mail_item("code-beside"))
        pipeline.one_mail("code-beside")
        pipeline.delete(deleted)
        assert pipeline.contents(deleted) == 1
    for id_ in ids:
        assert "Grace" in pipeline.one_mail(id_)["content"]["text"]
        assert pipeline.contents(id_) == 0


def test_a_run_above_the_daily_limit_waits_and_campaign_status_shows_the_wait(pipeline: Pipeline) -> None:
    """Going on when there is room takes minutes: tests/faults/test_day_limit_campaign.py shows it."""
    campaign = Campaign(pipeline, "over-the-day")

    def phase() -> str:
        return campaign.state().phase if campaign.state_or_none() else ""

    with pipeline.day_closed(3_600):
        campaign.start()
        until(lambda: phase() == "waits for the day", 11, lambda: f"{phase()!r}")
        campaign.stop()
    assert not campaign.mails()
    assert not pipeline.dead_letters(pipeline.output("CollectDlqUrl"))


def test_a_mail_above_the_daily_quota_of_ses_waits_until_it_expires_and_is_not_a_dead_letter(
    pipeline: Pipeline,
) -> None:
    expires = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(time.time() + 5))}Z"
    with pipeline.day_closed(1):
        with pipeline.release_stopped():
            pipeline.put(mail_item("used-up", email="used-up@simulator.amazonses.com", expires_at=expires))
            pipeline.until_waits("day_used_up", "used-up")
        assert pipeline.failure("used-up") == f"expires_at: {expires} is past"
    assert not any('"used-up"' in body for body in pipeline.dead_letters(pipeline.output("MailDlqUrl")))


def test_a_message_outside_its_window_waits_and_can_be_cancelled(pipeline: Pipeline) -> None:
    later = DAYS[(datetime.now(UTC).weekday() + 2) % 7]
    window = {"from": "09:00", "to": "10:00", "days": later, "zone": "Europe/Berlin"}
    about = {"id": "night", "window": window}
    pipeline.put(about | {"event_type": "sms", "to": "+16175551234", "text": "Hi"})
    pipeline.put(about | {"event_type": "push", "to": "token-1", "platform": "android", "body": "Hi"})
    for channel in ("sms", "push"):
        pipeline.until_waits("outside_window", "night", event_type=channel)
        url = f"{pipeline.output('ApiUrl')}/messages/night/cancel?event_type={channel}"
        assert json.loads(signed_reply("POST", url, b"{}").body)["status"] == "cancelled"
