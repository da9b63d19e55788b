"""Dead letters: bodies that are not messages, and messages that a fault of our configuration stops."""

import json
import time

from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import Pipeline, until

DEAD_SECONDS = 60.0
SECONDS = 30.0
NOT_MESSAGES = {"not JSON", '["a", "list"]', '{"event_type": "mail"}', '{"id": "cut off'}


def test_an_invalid_body_in_the_mail_queue_becomes_a_dead_letter_and_the_rest_of_its_batch_is_sent(
    pipeline: Pipeline,
) -> None:
    good = [mail_item(f"beside-{number}") for number in range(4)]
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


def test_a_dead_letter_of_a_wrong_configuration_is_marked_in_the_ledger_and_sent_by_a_redrive(
    pipeline: Pipeline,
) -> None:
    """Follow an operator's steps: a wrong setting, the alarm, the correction, the redrive."""
    dead = pipeline.output("MailDlqUrl")
    item = mail_item("dead", email="dead@example.com")
    with pipeline.configured(pipeline.output("SendMailFunctionName"), CONFIGURATION_SET="mailroom-nowhere"):
        pipeline.put(item)
        until(lambda: _letters(pipeline, dead), DEAD_SECONDS, lambda: "not dead")
    assert not pipeline.mails("dead")
    assert not pipeline.ledger("dead").keys() & {"failed_as", "startedAt"}
    _ring(pipeline)
    until(lambda: "dead_lettered_at" in pipeline.ledger("dead"), SECONDS, lambda: "not marked")
    row = pipeline.ledger("dead")
    assert (row["status"], row["trouble"]["code"]) == ("sending", "misconfigured")
    assert row["dead_lettered_at"] <= time.time() * 1000
    assert not {"completedAt", "error"} & row.keys()
    # The letter is visible again long before the function's time-out, and no letter was deleted.
    until(lambda: _letters(pipeline, dead), SECONDS, lambda: "the letter was not put back")
    (body,) = _letters(pipeline, dead)
    assert json.loads(body) == {**item, "template_version": 0}  # the deployed template was the current one
    pipeline.redrive(dead, pipeline.output("MailQueueUrl"), body)
    pipeline.until_status("delivered", "dead", seconds=SECONDS)
    assert not {"dead_lettered_at", "trouble"} & pipeline.ledger("dead").keys()
    assert len(pipeline.mails("dead")) == 1


def _letters(pipeline: Pipeline, url: str) -> list[str]:
    return [each for each in pipeline.dead_letters(url) if '"id":"dead"' in each.replace(" ", "")]


def _ring(pipeline: Pipeline) -> None:
    """Send CloudWatch's event to the function, because the emulator evaluates no alarm. The function then
    looks through every dead-letter queue, a second each. The test does not wait for the last."""
    alarm = {
        "source": "aws.cloudwatch",
        "detail-type": "CloudWatch Alarm State Change",
        "detail": {"alarmName": "mailroom-local-mail-dlq-not-empty", "state": {"value": "ALARM"}},
    }
    function = pipeline.output("DeadLettersFunctionName")
    pipeline.functions.invoke(FunctionName=function, InvocationType="Event", Payload=json.dumps(alarm))
