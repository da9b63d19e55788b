"""What is our fault, or nobody's message, ends in the dead-letter queue, and its batch goes on."""

import json
import time

from lab.harness.expected import Item
from tests.support.pipeline.items import mail
from tests.support.pipeline.shared import Pipeline, until

DEAD_SECONDS = 60.0
SECONDS = 30.0
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


def test_a_dead_letter_is_marked_kept_and_sent_by_a_redrive(pipeline: Pipeline) -> None:
    """As an operator lives it: a fault of ours, the alarm, the fault fixed, the redrive."""
    dead = pipeline.output("MailDlqUrl")
    with pipeline.configured(pipeline.output("SendMailFunctionName"), CONFIGURATION_SET="mailroom-nowhere"):
        pipeline.put(mail("dead", email="dead@example.com"))
        until(lambda: _letters(pipeline, dead), 60, lambda: "not dead")
    _ring(pipeline)
    until(lambda: "dead_lettered_at" in pipeline.ledger("dead"), SECONDS, lambda: "not marked")
    row = pipeline.ledger("dead")
    assert (row["status"], row["trouble"]["code"]) == ("sending", "misconfigured")
    assert row["dead_lettered_at"] <= time.time() * 1000
    assert not {"completedAt", "error"} & row.keys()
    # The letter is visible soon, long before the function's time-out, and nothing was deleted.
    until(lambda: _letters(pipeline, dead), SECONDS, lambda: "the letter was not put back")
    (body,) = _letters(pipeline, dead)
    pipeline.redrive(dead, pipeline.output("MailQueueUrl"), body)
    pipeline.until_status("delivered", "dead", seconds=SECONDS)
    assert not {"dead_lettered_at", "trouble"} & pipeline.ledger("dead").keys()
    assert len(pipeline.mails("dead")) == 1


def _letters(pipeline: Pipeline, url: str) -> list[str]:
    return [each for each in pipeline.dead_letters(url) if '"id":"dead"' in each.replace(" ", "")]


def _ring(pipeline: Pipeline) -> None:
    """CloudWatch's event, as its rule hands it on; the emulator evaluates no alarm. The function then looks
    through every dead-letter queue, which takes a second each: nobody waits for the last."""
    alarm = {
        "source": "aws.cloudwatch",
        "detail-type": "CloudWatch Alarm State Change",
        "detail": {"alarmName": "mailroom-local-mail-dlq-not-empty", "state": {"value": "ALARM"}},
    }
    function = pipeline.output("DeadLettersFunctionName")
    pipeline.functions.invoke(FunctionName=function, InvocationType="Event", Payload=json.dumps(alarm))
