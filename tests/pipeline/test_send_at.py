"""Messages that wait for their time: in their queue for two minutes, before that in the ledger."""

import json
from datetime import UTC, datetime, timedelta

from lab.harness.expected import Item
from mailroom.clock import iso
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import Pipeline, until


def ahead(**spans: float) -> datetime:
    return datetime.now(UTC) + timedelta(**spans)


def put_waiting(pipeline: Pipeline, id_: str, **attributes: object) -> Item:
    """Put a mail for twenty minutes ahead, and wait until it waits."""
    item = mail_item(id_, **({"send_at": ahead(minutes=20).isoformat()} | attributes))
    pipeline.put(item)
    pipeline.until_waits("send_at", id_)
    return item


def test_a_mail_is_not_sent_before_a_send_at_a_few_seconds_ahead(pipeline: Pipeline) -> None:
    due = ahead(seconds=2.9)
    pipeline.put(mail_item("soon", send_at=due.isoformat()))
    accepted = datetime.fromisoformat(pipeline.one_mail("soon")["received_at"])
    assert due <= accepted < due + timedelta(seconds=60)


def test_a_mail_whose_send_at_is_twenty_minutes_ahead_waits_in_the_ledger_without_its_content(
    pipeline: Pipeline,
) -> None:
    due = ahead(minutes=20).replace(microsecond=0)
    put_waiting(pipeline, "later", send_at=due.isoformat())
    row = pipeline.ledger("later")
    assert (row["scheduledFor"], int(row["waits_at"])) == (iso(due.timestamp()), due.timestamp())
    assert row["waits_in"].startswith("due#")
    assert pipeline.contents("later") == 0
    assert not pipeline.mails("later")


def test_a_mail_is_sent_once_at_its_time_despite_a_second_queue_message(pipeline: Pipeline) -> None:
    item = put_waiting(pipeline, "due", lane="bulk")
    pipeline.put(item | {"send_at": ahead(seconds=-1).isoformat()})
    pipeline.come_due("due")
    pipeline.one_mail("due")
    assert not {"wait", "waits_in", "waits_at"} & pipeline.ledger("due").keys()
    pipeline.send(pipeline.output("MailBulkQueueUrl"), [json.dumps(item)])
    pipeline.until_logged(pipeline.output("SendMailBulkFunctionName"), "already done", '"due"')
    assert pipeline.one_mail("due")


def test_a_due_mail_is_sent_by_the_round_that_the_schedule_of_release_starts(pipeline: Pipeline) -> None:
    item = put_waiting(pipeline, "by-rule")
    pipeline.put(item | {"send_at": ahead(seconds=-1).isoformat()})
    pipeline.make_due("by-rule")
    pipeline.one_mail("by-rule")


def test_a_mail_whose_send_at_was_postponed_waits_again(pipeline: Pipeline) -> None:
    item, later = put_waiting(pipeline, "moved"), ahead(minutes=40).replace(microsecond=0)
    pipeline.put(item | {"send_at": later.isoformat()})
    pipeline.come_due("moved")
    waiting = ("scheduled", iso(later.timestamp()))

    def stands() -> tuple[str, str]:
        row = pipeline.ledger("moved")
        return row["status"], row["scheduledFor"]

    until(lambda: stands() == waiting, 20, lambda: f"it does not wait again: {stands()}")
    assert not pipeline.mails("moved")


def test_a_mail_that_is_deleted_before_its_time_is_cancelled(pipeline: Pipeline) -> None:
    put_waiting(pipeline, "taken-back", send_at=ahead(hours=48).isoformat())
    pipeline.delete("taken-back")
    pipeline.come_due("taken-back")
    pipeline.until_ended("taken-back")
    row = pipeline.ledger("taken-back")
    assert (row["status"], row["error"]["code"]) == ("cancelled", "cancelled")
    assert "deleted from the mailbox" in row["error"]["message"]
    assert not pipeline.mails("taken-back")
