"""Messages that wait for their time: by the queue's delay, or by a schedule."""

import hashlib
import json
import math
from datetime import UTC, datetime, timedelta

import pytest

from mailroom_local.harness.expected import Item
from tests.support.pipeline.items import mail
from tests.support.pipeline.shared import Pipeline, until

GROUP = "mailroom-local"


def ahead(**spans: float) -> datetime:
    return datetime.now(UTC) + timedelta(**spans)


def schedule_name(id_: str, send_at: str) -> str:
    due = math.ceil(datetime.fromisoformat(send_at).timestamp())
    return hashlib.sha256(f"mail\0{id_}\0{due}".encode()).hexdigest()


def schedule(pipeline: Pipeline, item: Item) -> str:
    """Put a message that waits; its schedule's own Input."""
    pipeline.put(item)
    until(lambda: pipeline.ledger(item["id"]), 20, lambda: "no ledger item")
    name = schedule_name(item["id"], item["send_at"])
    made = pipeline.scheduler.get_schedule(GroupName=GROUP, Name=name)
    return made["Target"]["Input"]


def schedules(pipeline: Pipeline) -> set[str]:
    """The names of all that stand."""
    return {each["Name"] for each in pipeline.scheduler.list_schedules(GroupName=GROUP)["Schedules"]}


@pytest.mark.parametrize("seconds", [2.4, 2.9])
def test_a_mail_is_not_sent_before_a_send_at_a_few_seconds_ahead(pipeline: Pipeline, seconds: float) -> None:
    id_, due = f"soon-{seconds}", ahead(seconds=seconds)
    pipeline.put(mail(id_, send_at=due.isoformat()))
    accepted = datetime.fromisoformat(pipeline.one_mail(id_)["received_at"])
    assert due <= accepted < due + timedelta(seconds=60)


def test_a_send_at_twenty_minutes_ahead_makes_a_schedule_with_the_key_alone(pipeline: Pipeline) -> None:
    due = ahead(minutes=20).replace(microsecond=0)
    pipeline.put(mail("later", send_at=due.isoformat()))
    until(lambda: pipeline.ledger("later"), 20, lambda: "no ledger item")
    row = pipeline.ledger("later")
    assert (row["status"], row["scheduledFor"]) == ("scheduled", f"{due:%Y-%m-%dT%H:%M:%S}.000Z")
    made = pipeline.scheduler.get_schedule(GroupName=GROUP, Name=schedule_name("later", due.isoformat()))
    assert made["ScheduleExpression"] == f"at({due:%Y-%m-%dT%H:%M:%S})"
    assert made["ScheduleExpressionTimezone"] == "UTC"
    assert made["ActionAfterCompletion"] == "DELETE"
    assert made["Target"]["Arn"] == pipeline.output("ScheduledQueueArn")
    assert made["Target"]["DeadLetterConfig"]["Arn"] == pipeline.output("ScheduledDlqArn")
    assert ":role/" in made["Target"]["RoleArn"]
    assert json.loads(made["Target"]["Input"]) == {"id": "later", "event_type": "mail"}
    assert not pipeline.mails("later")


def test_when_its_time_comes_a_scheduled_mail_is_sent_once_however_often_it_comes(pipeline: Pipeline) -> None:
    item = mail("due", send_at=ahead(minutes=20).isoformat(), lane="bulk")
    due = schedule(pipeline, item)
    pipeline.put(item | {"send_at": ahead(seconds=-1).isoformat()})  # its time has come
    pipeline.send(pipeline.output("ScheduledQueueUrl"), [due, due])
    pipeline.one_mail("due")
    pipeline.send(pipeline.output("ScheduledQueueUrl"), [due])
    sender = pipeline.output("SendMailBulkFunctionName")
    pipeline.until_logged(sender, "already done", '"due"')
    assert pipeline.one_mail("due")


def test_a_mail_whose_send_at_was_moved_on_waits_again(pipeline: Pipeline) -> None:
    item = mail("moved", send_at=ahead(minutes=20).isoformat())
    first, later = schedule(pipeline, item), ahead(minutes=40).isoformat()
    pipeline.put(item | {"send_at": later})
    pipeline.send(pipeline.output("ScheduledQueueUrl"), [first])
    second = schedule_name("moved", later)
    until(lambda: second in schedules(pipeline), 20, lambda: "it does not wait again")
    assert pipeline.ledger("moved")["status"] == "scheduled"
    assert not pipeline.mails("moved")


def test_a_scheduled_mail_that_is_deleted_before_its_time_is_cancelled(pipeline: Pipeline) -> None:
    due = schedule(pipeline, mail("taken-back", send_at=ahead(hours=48).isoformat()))
    pipeline.delete("taken-back")
    pipeline.send(pipeline.output("ScheduledQueueUrl"), [due])
    pipeline.until_ended("taken-back")
    row = pipeline.ledger("taken-back")
    assert (row["status"], row["error"]["code"]) == ("cancelled", "cancelled")
    assert "deleted from the mailbox" in row["error"]["message"]
    assert not pipeline.mails("taken-back")


def test_a_scheduled_mail_that_expires_before_it_is_sent_fails(pipeline: Pipeline) -> None:
    send_at, expires_at = ahead(minutes=20), ahead(minutes=30)
    item = mail("too-late", send_at=send_at.isoformat(), expires_at=expires_at.isoformat())
    due = schedule(pipeline, item)
    pipeline.put(
        item | {"expires_at": ahead(seconds=-1).isoformat(), "send_at": ahead(minutes=-1).isoformat()}
    )
    pipeline.send(pipeline.output("ScheduledQueueUrl"), [due])
    assert pipeline.failure("too-late").startswith("expires_at: ")
