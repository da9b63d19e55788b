"""`repair ID…`: the messages that an operator names, and no others."""

import json
import time
from typing import Any

import pytest

from mailroom.clock import iso
from tests.support.ops.repair import LEDGER, MAILBOX, RepairStage, repair_stage, run
from tests.support.pipeline.items import mail

STAGE = repair_stage
OLD_SECONDS = 900 * 86_400


@pytest.fixture
def stage(stage: RepairStage) -> RepairStage:
    """A stage that is older than its ledger remembers."""
    for table in (MAILBOX, LEDGER):
        stage.made(table, time.time() - OLD_SECONDS)
    return stage


def repaired(*arguments: str, typed: str | None = None) -> tuple[int, dict[str, Any]]:
    result = run("repair", *arguments, "--json", typed=typed)
    return result.exit_code, json.loads(result.stdout)


def states(answer: dict[str, Any]) -> dict[str, str]:
    return {each["id"]: each["state"] for each in answer["messages"]}


def requeued(stage: RepairStage) -> list[str]:
    """The ids that dispatch was handed."""
    return [each["dynamodb"]["NewImage"]["id"]["S"] for each in stage.functions.records("dispatch")]


def test_only_a_named_message_is_requeued_and_at_once(stage: RepairStage) -> None:
    stage.put(mail("lost"), mail("sent a year ago"))
    code, answer = repaired("lost", "--yes")
    assert (code, requeued(stage)) == (0, ["lost"])
    assert [(each["id"], each["state"], each["cures"]) for each in answer["messages"]] == [
        ("lost", "forgotten", ["requeue"])
    ]
    assert (answer["found"], answer["repaired"], answer["may_go_twice"]) == (
        {"forgotten": {"mail": 1}},
        {"mail": 1},
        1,
    )


def test_a_repair_asks_the_operator_to_confirm_that_the_messages_were_never_sent(stage: RepairStage) -> None:
    stage.put(mail("lost"))
    result = run("repair", "lost", typed="n\n")
    assert result.exit_code == 1
    assert "lost (mail): without a record" in result.stdout
    assert (
        "Repair 1 message of dev? The ledger may have forgotten 1 of them. Confirm that they were never "
        "sent. A message that was sent would be sent again." in result.stderr
    )
    assert not stage.functions.invoked
    assert run("repair", "lost", typed="y\n").exit_code == 0
    assert requeued(stage) == ["lost"]


def test_a_message_unknown_to_a_complete_ledger_needs_no_confirmation_that_it_was_never_sent(
    stage: RepairStage,
) -> None:
    for table in (MAILBOX, LEDGER):
        stage.made(table, time.time() - 86_400)
    stage.put(mail("lost"))
    asked = run("repair", "lost", typed="n\n")
    assert "Repair 1 message of dev? [y/N]" in asked.stderr
    assert repaired("lost", "--yes")[1]["may_go_twice"] == 0


def test_a_named_message_with_a_ledger_item_is_diagnosed_as_in_a_scan(stage: RepairStage) -> None:
    stage.failed("over", status="sent")
    stage.know("begun", status="sending", startedAt=1)
    stage.know("begun just now", status="sending", updatedAt=iso(time.time()))
    stage.know("lies", status="sending", dead_lettered_at=round(time.time() * 1000))
    names = ("over", "begun", "begun just now", "lies")
    stage.put(*map(mail, names))
    code, answer = repaired(*names, "--yes")
    assert states(answer) == {
        "over": "fine",
        "begun": "overdue",
        "begun just now": "fine",
        "lies": "dead_letter",
    }
    assert (code, [each["id"] for each in stage.bodies("mail")]) == (0, ["begun", "lies"])
    assert not stage.functions.invoked


def test_an_id_without_a_message_is_reported_as_unknown_and_exits_with_1(stage: RepairStage) -> None:
    stage.put(mail("lost"))
    code, answer = repaired("nowhere", "lost", "--yes")
    assert (code, states(answer), requeued(stage)) == (
        1,
        {"nowhere": "unknown", "lost": "forgotten"},
        ["lost"],
    )
    assert "nowhere: not in the mailbox, and without a record" in run("repair", "nowhere").stdout


def test_an_id_of_two_channels_needs_the_channel(stage: RepairStage) -> None:
    stage.put(mail("a"), {"id": "a", "event_type": "sms", "to": "+16175551234", "text": "Hi"})
    result = run("repair", "a", "--yes")
    assert result.exit_code == 2
    assert "a: mail and sms have messages with that id; choose one with --channel." in result.stderr
    assert not stage.functions.invoked
    code, answer = repaired("a", "--channel", "sms", "--yes")
    assert (code, answer["repaired"]) == (0, {"sms": 1})


def test_empty_standard_input_repairs_no_message(stage: RepairStage) -> None:
    stage.put(mail("a"))
    code, answer = repaired("-", "--include-forgotten", "--older-than", "0s", "--yes", typed="")
    assert (code, answer["messages"], answer["found"], requeued(stage)) == (0, [], {}, [])


def test_contradictory_or_missing_options_are_refused(stage: RepairStage) -> None:
    stage.put(mail("a"))
    for options, words in (
        ("", "Say what to repair"),
        ("--channel mail", "Say what to repair"),
        ("a --scan", "Say what to repair"),
        ("--scan --dead-letters all", "Say what to repair"),
        ("--scan --channel mail", "--channel needs ids"),
        ("--scan --as sent", "--as needs ids"),
        ("a --dead-letters mail --as sent", "--as needs ids"),
        ("a --dead-letters all", "Name the queue"),
    ):
        result = run("repair", *options.split(), "--yes")
        assert (result.exit_code, words in result.stderr) == (2, True), options
    assert not stage.functions.invoked


def test_the_dead_letter_of_a_named_message_goes_back_into_its_queue(stage: RepairStage) -> None:
    stage.know("m", status="sending", dead_lettered_at=round((time.time() - 3600) * 1000))
    stage.put(mail("m"))
    for id_ in ("m", "other"):
        body = json.dumps({"id": id_, "event_type": "mail", "attempt": 1})
        stage.sqs.send_message(QueueUrl=stage.urls["mail-dlq"], MessageBody=body)
    code, answer = repaired("m", "--older-than", "0s", "--yes")
    assert (code, answer["repaired"]) == (0, {"mail": 1})
    assert [each["id"] for each in stage.bodies("mail")] == ["m"]
    assert [each["id"] for each in stage.bodies("mail-dlq")] == ["other"]
