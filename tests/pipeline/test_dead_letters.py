"""What is our fault, or nobody's message, ends in the dead-letter queue, and its batch goes on."""

import json

from lab.harness.expected import Item
from tests.support.pipeline.items import mail
from tests.support.pipeline.shared import Pipeline, until

DEAD_SECONDS = 60.0
NOT_MESSAGES = {"not JSON", '["a", "list"]', '{"event_type": "mail"}', '{"id": "cut off'}


def dead_messages(pipeline: Pipeline) -> list[Item]:
    """The messages in mail's dead-letter queue."""
    bodies = pipeline.dead_letters(pipeline.output("MailDlqUrl")) - NOT_MESSAGES
    return [json.loads(body) for body in bodies]


def test_a_fault_of_configuration_makes_a_whole_dead_letter_and_no_failed_message(pipeline: Pipeline) -> None:
    item = mail("unverified", email="unverified@simulator.amazonses.com")
    pipeline.put(item, mail("after-unverified"))
    pipeline.one_mail("after-unverified")
    queued = {**item, "template_version": 0}  # the deployed template was the one that counted
    until(lambda: queued in dead_messages(pipeline), DEAD_SECONDS, lambda: str(pipeline.ledger("unverified")))
    row = pipeline.ledger("unverified")
    assert row["status"] == "sending"
    assert not row.keys() & {"completedAt", "error", "failed_on", "startedAt"}
    assert not pipeline.mails("unverified")


def test_a_body_that_is_no_message_becomes_a_dead_letter_and_its_batch_goes_on(pipeline: Pipeline) -> None:
    good = [mail(f"beside-{number}") for number in range(4)]
    bodies = [body for pair in zip(NOT_MESSAGES, map(json.dumps, good), strict=True) for body in pair]
    pipeline.send(pipeline.output("MailQueueUrl"), bodies)
    for item in good:
        pipeline.one_mail(item["id"])
    dead = pipeline.output("MailDlqUrl")
    until(
        lambda: pipeline.dead_letters(dead) >= NOT_MESSAGES,
        DEAD_SECONDS,
        lambda: f"missing: {NOT_MESSAGES - pipeline.dead_letters(dead)}",
    )
    assert all(pipeline.one_mail(item["id"]) for item in good)
