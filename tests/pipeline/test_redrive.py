"""Dead letters put back by the operator's command end in the inbox, once."""

import json
from typing import Any

import pytest

from tests.support.pipeline.campaign import operator
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import Pipeline, until

SECONDS = 30.0


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty response of SQS is a proof only after a long poll. In the emulator, one is enough."""
    for module in ("mailroom_ops.repair.dead_letter_queues", "mailroom_ops.repair.redrive"):
        monkeypatch.setattr(f"{module}.LONG_POLL_SECONDS", 0)


def command(pipeline: Pipeline, *options: str) -> tuple[int, dict[str, Any]]:
    result = operator(pipeline, *options, "--stage", "local", "--json")
    assert result.exit_code in (0, 1), result.stderr
    return result.exit_code, json.loads(result.stdout)


def counts_of_queue(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of the only queue in an answer."""
    (queue,) = answer["queues"]
    return dict(queue)


def test_a_redrive_sends_each_unsent_dead_letter_once_and_does_not_send_a_sent_one_again(
    pipeline: Pipeline,
) -> None:
    pipeline.put(mail_item("redriven-before"))
    pipeline.one_mail("redriven-before")
    items = [mail_item("redriven-before"), mail_item("redriven-1"), mail_item("redriven-2")]
    dead = pipeline.output("MailBulkDlqUrl")
    pipeline.send(dead, [json.dumps(each) for each in items])

    _, shown = command(pipeline, "messages", "dead-letters", "redriven-1", "--queue", "mail-bulk")
    assert [each["id"] for each in shown["letters"]] == ["redriven-1"]
    chosen = [str(item["id"]) for item in items]
    code, answer = command(pipeline, "messages", "resend", "--dead-letters", "mail-bulk", *chosen, "--yes")

    assert (code, counts_of_queue(answer)["moved"], counts_of_queue(answer)["left"]) == (0, 3, 0)
    for id_ in ("redriven-1", "redriven-2"):
        pipeline.one_mail(id_)
    bulk = pipeline.output("MailBulkQueueUrl")
    until(lambda: pipeline.queue_is_empty(bulk), SECONDS, lambda: "the queue is not empty")
    assert len(pipeline.mails("redriven-before")) == 1
    assert not pipeline.dead_letters(dead) & {json.dumps(each) for each in items}


def test_a_fax_that_is_redriven_from_its_dead_letter_queue_is_sent_once(pipeline: Pipeline) -> None:
    number = "+16175550177"
    body = {"fax_id": "redriven-fax", "to": number, "pdf_url": "https://example.com/faxes/redriven-fax.pdf"}
    pipeline.sqs.send_message(
        QueueUrl=pipeline.output("FaxDlqUrl"),
        MessageBody=json.dumps(body),
        MessageGroupId=number,
        MessageDeduplicationId="redriven-fax",
    )
    code, answer = command(pipeline, "messages", "resend", "--dead-letters", "fax", "redriven-fax", "--yes")
    assert (code, counts_of_queue(answer)["moved"]) == (0, 1)
    pipeline.until_ended("redriven-fax", event_type="fax", seconds=SECONDS)
    assert len(pipeline.calls("redriven-fax")) == 1
