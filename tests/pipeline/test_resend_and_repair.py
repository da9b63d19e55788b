"""`messages resend`, as real processes, on a stage that runs."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from lab.harness.stage_client import typed
from mailroom.clock import iso
from mailroom_local.stage.workspace import LEDGER, MAILBOX
from mailroom_ops.repair.judge import SENTENCES, State
from tests.support.pipeline.campaign import answer_of
from tests.support.pipeline.items import correlation, mail_item
from tests.support.pipeline.shared import Accepted, Pipeline

LONG_AGO = iso(time.time() - 86_400)


def accepted_mails(pipeline: Pipeline, id_: str) -> list[Accepted]:
    """The mails of a message that SES accepted, of whatever attempt."""
    mark = correlation(id_)
    headers = [(each, each["content"]["headers"].get("X-Correlation-ID", "")) for each in pipeline.inbox()]
    return [each for each, found in headers if found.partition(".")[0] == mark]


def test_a_failed_mail_that_is_corrected_in_the_mailbox_is_sent_once_by_a_resend(pipeline: Pipeline) -> None:
    pipeline.put(mail_item("resent", template="no-such-template"))
    assert "template" in pipeline.failure("resent")
    pipeline.put(mail_item("resent", subject="Now", text="it goes out"))
    (message,) = answer_of(pipeline, "messages", "resend", "resent")["messages"]
    assert (message["result"], message["attempt"]) == ("resent", 2)
    pipeline.until_ended("resent")
    (sent,) = accepted_mails(pipeline, "resent")
    assert sent["content"]["text"] == "it goes out"
    (refused,) = answer_of(pipeline, "messages", "resend", "resent", codes=(1,))["messages"]
    assert refused["result"] == "refused"
    assert len(accepted_mails(pipeline, "resent")) == 1


def test_a_failed_fax_is_sent_again_by_a_resend(pipeline: Pipeline) -> None:
    given_up = {"status": "failed", "completedAt": 1, "attempts": 8, "claim_token": "old"}
    know(pipeline, "given-up", "fax", to="+13125550160", pdf_url="https://example.com/f.pdf", **given_up)
    assert answer_of(pipeline, "messages", "resend", "given-up")["counts"] == {"resent": 1}
    pipeline.until_ended("given-up", event_type="fax")
    row = pipeline.ledger("given-up", "fax")
    assert (row["status"], row["attempts"]) == ("delivered", 9)


def test_a_repair_finds_abandoned_messages_and_each_is_sent_once(pipeline: Pipeline) -> None:
    strand(pipeline, "lost-wait")
    strand(pipeline, "never-begun")
    pipeline.dynamodb.delete_item(TableName=LEDGER, Key=typed({"id": "never-begun", "event_type": "mail"}))
    know(
        pipeline, "lost-fax", "fax", status="sending", to="+13125550161", pdf_url="https://example.com/g.pdf"
    )
    stuck: dict[str, State] = {"lost-wait": "overdue", "never-begun": "missing", "lost-fax": "overdue"}
    looked = answer_of(pipeline, "messages", "resend", *stuck, "--older-than", "2s", "--dry-run")
    assert states(looked) == {id_: ("ready", SENTENCES[state]) for id_, state in stuck.items()}
    assert not pipeline.ledger("never-begun")
    answer = answer_of(pipeline, "messages", "resend", "--stuck", "--older-than", "2s", "--yes", codes=(0, 1))
    assert answer["repaired"]["mail"] >= 2
    assert answer["repaired"]["fax"] >= 1
    pipeline.until_ended("lost-wait", "never-begun")
    pipeline.until_ended("lost-fax", event_type="fax")
    assert pipeline.ledger("lost-fax", "fax")["status"] == "delivered"
    answer_of(pipeline, "messages", "resend", "--stuck", "--older-than", "2s", "--yes", codes=(0, 1))
    after = answer_of(pipeline, "messages", "resend", *stuck, "--older-than", "2s", "--dry-run", codes=(1,))
    assert {result for result, _ in states(after).values()} == {"refused"}
    assert [len(accepted_mails(pipeline, id_)) for id_ in ("lost-wait", "never-begun")] == [1, 1]


def test_a_stuck_message_that_is_named_in_a_resend_is_queued_at_once_and_sent_once(
    pipeline: Pipeline,
) -> None:
    strand(pipeline, "named")
    pipeline.dynamodb.delete_item(TableName=LEDGER, Key=typed({"id": "named", "event_type": "mail"}))
    assert answer_of(pipeline, "messages", "resend", "named", "--yes")["counts"] == {"resent": 1}
    pipeline.until_ended("named")
    assert answer_of(pipeline, "messages", "resend", "named", "--yes", codes=(1,))["counts"] == {"refused": 1}
    assert len(accepted_mails(pipeline, "named")) == 1


def states(answer: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """The result of each message that was named, and the reason."""
    return {each["id"]: (each["result"], each["why"]) for each in answer["messages"]}


def know(pipeline: Pipeline, id_: str, event_type: str, **attributes: object) -> None:
    """An item of the ledger that was last changed long ago."""
    item = {"id": id_, "event_type": event_type, "updatedAt": LONG_AGO, **attributes}
    pipeline.dynamodb.put_item(TableName=LEDGER, Item=typed(item))


def strand(pipeline: Pipeline, id_: str) -> None:
    """A mail that waited, whose mark is gone and whose time has come since."""
    due = datetime.now(UTC) + timedelta(minutes=20)
    pipeline.put(mail_item(id_, send_at=due.isoformat()))
    pipeline.until_waits("send_at", id_)
    pipeline.dynamodb.update_item(
        TableName=LEDGER,
        Key=typed({"id": id_, "event_type": "mail"}),
        UpdateExpression="SET scheduledFor = :past, updatedAt = :past REMOVE #wait, waits_in, waits_at",
        ExpressionAttributeNames={"#wait": "wait"},
        ExpressionAttributeValues=typed({":past": LONG_AGO}),
    )
    pipeline.dynamodb.put_item(TableName=MAILBOX, Item=typed(mail_item(id_)))
