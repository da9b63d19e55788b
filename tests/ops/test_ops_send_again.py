"""`messages resend ID…`: the messages that an operator names, in whatever state they are, and no others."""

import json
import time
from typing import Any

import pytest

from mailroom.clock import iso
from mailroom_ops.repair.judge import SENTENCES
from tests.support.ops.repair import LEDGER, MAILBOX, RepairStage, repair_stage, run, run_resend
from tests.support.pipeline.items import mail_item

STAGE = repair_stage
OLD_SECONDS = 900 * 86_400


@pytest.fixture
def stage(stage: RepairStage) -> RepairStage:
    """A stage that is older than its ledger remembers."""
    for table in (MAILBOX, LEDGER):
        stage.made(table, time.time() - OLD_SECONDS)
    return stage


def results_by_id(messages: dict[str, dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """The result of each message, and the reason."""
    return {id_: (each["result"], each["why"]) for id_, each in messages.items()}


def requeued(stage: RepairStage) -> list[str]:
    """The ids that dispatch was handed."""
    return [each["dynamodb"]["NewImage"]["id"]["S"] for each in stage.functions.records("dispatch")]


def test_a_resend_queues_only_the_named_message_although_the_ledger_may_have_forgotten_it(
    stage: RepairStage,
) -> None:
    stage.put(mail_item("lost"), mail_item("sent a year ago"))
    code, messages = run_resend("lost", "--yes")
    assert (code, requeued(stage), results_by_id(messages)) == (
        0,
        ["lost"],
        {"lost": ("resent", SENTENCES["forgotten"])},
    )
    assert messages["lost"]["may_arrive_twice"]


def test_a_resend_of_a_message_that_the_ledger_may_have_forgotten_requires_a_confirmation(
    stage: RepairStage,
) -> None:
    stage.put(mail_item("lost"))
    result = run("resend", "lost", typed="n\n")
    assert result.exit_code == 1
    assert "without a record, which may have expired" in " ".join(result.stdout.split())
    assert "Send 1 message of dev again? 1 of them may arrive twice." in result.stderr
    assert not stage.functions.invoked
    assert run("resend", "lost", typed="y\n").exit_code == 0
    assert requeued(stage) == ["lost"]


def test_a_message_that_a_complete_ledger_does_not_have_is_resent_without_a_confirmation(
    stage: RepairStage,
) -> None:
    for table in (MAILBOX, LEDGER):
        stage.made(table, time.time() - 86_400)
    stage.put(mail_item("lost"))
    assert results_by_id(run_resend("lost")[1]) == {"lost": ("resent", SENTENCES["missing"])}
    assert requeued(stage) == ["lost"]


def test_a_resend_queues_failed_or_overdue_messages_and_dead_letters_and_refuses_the_others(
    stage: RepairStage,
) -> None:
    stage.failed("over")
    stage.failed("arrived", status="sent")
    stage.know("begun", status="sending", startedAt=1)
    stage.know("begun just now", status="sending", updatedAt=iso(time.time()))
    stage.know("lies", status="sending", dead_lettered_at=round(time.time() * 1000))
    stage.know("gone", status="sending", startedAt=1)
    names = ("over", "arrived", "begun", "begun just now", "lies")
    stage.put(*map(mail_item, names))
    code, messages = run_resend(*names, "gone", "nowhere", "--yes")
    assert code == 1
    assert {id_: result for id_, (result, _) in results_by_id(messages).items()} == {
        "over": "resent",
        "arrived": "refused",
        "begun": "resent",
        "begun just now": "refused",
        "lies": "resent",
        "gone": "refused",
        "nowhere": "refused",
    }
    assert sorted(each["id"] for each in stage.bodies("mail")) == ["begun", "lies", "over"]
    assert (messages["begun"]["why"], messages["gone"]["why"]) == (SENTENCES["overdue"], SENTENCES["gone"])
    assert messages["begun just now"]["why"] == "sending: it is on its way"
    assert not stage.functions.invoked


def test_a_resend_does_not_queue_a_message_that_ended_after_the_question(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.know("m", status="sending", startedAt=1)
    stage.put(mail_item("m"))

    def thinks(*_: object, **__: object) -> bool:
        stage.failed("m", status="sent")
        return True

    monkeypatch.setattr("mailroom_ops.messages.sets._confirm", thinks)
    code, messages = run_resend("m")
    assert (code, messages["m"]["why"]) == (1, "it has changed since it was shown; run this again")
    assert not stage.bodies("mail")


def test_each_message_that_the_function_dispatch_does_not_accept_is_reported_as_unqueued(
    stage: RepairStage,
) -> None:
    for table in (MAILBOX, LEDGER):
        stage.made(table, time.time() - 86_400)
    stage.put(mail_item("a"), mail_item("b"))
    stage.functions.failing = {"1"}
    code, messages = run_resend("a", "b")
    assert (code, sorted(result for result, _ in results_by_id(messages).values())) == (
        1,
        ["resent", "unqueued"],
    )


def test_a_resend_queues_the_other_messages_although_an_id_is_unknown(stage: RepairStage) -> None:
    stage.put(mail_item("lost"))
    code, messages = run_resend("nowhere", "lost", "--yes")
    assert (code, requeued(stage)) == (1, ["lost"])
    assert messages["nowhere"]["why"] == "there is no such message in the ledger"


def test_a_resend_of_a_missing_message_requires_the_channel_for_an_id_that_two_channels_have(
    stage: RepairStage,
) -> None:
    stage.put(mail_item("a"), {"id": "a", "event_type": "sms", "to": "+16175551234", "text": "Hi"})
    assert run_resend("a", "--yes")[0] == 1
    assert not stage.functions.invoked
    code, messages = run_resend("a", "--channel", "sms", "--yes")
    assert (code, messages["a"]["event_type"], requeued(stage)) == (0, "sms", ["a"])


def test_a_resend_with_empty_standard_input_does_not_queue_a_message_and_exits_with_0(
    stage: RepairStage,
) -> None:
    stage.put(mail_item("a"))
    code, messages = run_resend("-", "--older-than", "0s", "--yes", typed="")
    assert (code, messages, requeued(stage)) == (0, {}, [])


def test_messages_resend_refuses_contradictory_or_missing_options(stage: RepairStage) -> None:
    stage.put(mail_item("a"))
    for options, words in (
        ("", "Name the messages"),
        ("--channel mail", "Name the messages"),
        ("a --stuck", "Name the messages"),
        ("--stuck --dead-letters all", "Name the messages"),
        ("--stuck --given-up", "Name the messages"),
        ("--stuck --force", "--force needs ids"),
        ("a --dead-letters mail --force", "--force needs ids"),
        ("a --dead-letters all", "Name the queue"),
    ):
        result = run("resend", *options.split(), "--yes")
        assert (result.exit_code, words in result.stderr) == (2, True), options
    assert not stage.functions.invoked


def test_a_resend_of_a_named_message_moves_only_its_dead_letter_back_into_the_queue(
    stage: RepairStage,
) -> None:
    stage.know("m", status="sending", dead_lettered_at=round((time.time() - 3600) * 1000))
    stage.put(mail_item("m"))
    for id_ in ("m", "other"):
        body = json.dumps({"id": id_, "event_type": "mail", "attempt": 1})
        stage.sqs.send_message(QueueUrl=stage.urls["mail-dlq"], MessageBody=body)
    code, messages = run_resend("m", "--older-than", "0s")
    assert (code, messages["m"]["result"]) == (0, "resent")
    assert [each["id"] for each in stage.bodies("mail")] == ["m"]
    assert [each["id"] for each in stage.bodies("mail-dlq")] == ["other"]
