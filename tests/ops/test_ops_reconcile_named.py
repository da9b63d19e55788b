"""`reconcile ID…`: the messages that an operator names, and no others."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from local.demo.client import typed
from mailroom.clock import iso
from tests.support.ops.repair import LEDGER, MAILBOX, RepairStage, repair_stage, run
from tests.support.pipeline.items import mail

OLD_SECONDS = 900 * 86_400


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[RepairStage]:
    """A stage that is older than its ledger remembers."""
    with repair_stage(monkeypatch) as stage:
        for table in (MAILBOX, LEDGER):
            stage.made(table, time.time() - OLD_SECONDS)
        yield stage


def reconciled(*arguments: str, typed: str | None = None) -> tuple[int, dict[str, Any]]:
    result = run("reconcile", *arguments, "--json", typed=typed)
    return result.exit_code, json.loads(result.stdout)


def states(answer: dict[str, Any]) -> dict[str, str]:
    return {each["id"]: each["state"] for each in answer["messages"]}


def requeued(stage: RepairStage) -> list[str]:
    """The ids that dispatch was handed."""
    return [each["dynamodb"]["NewImage"]["id"]["S"] for each in stage.functions.records("dispatch")]


def test_only_a_named_message_is_requeued_and_at_once(stage: RepairStage) -> None:
    stage.put(mail("lost"), mail("sent a year ago"))
    code, answer = reconciled("lost", "--yes")
    assert (code, requeued(stage)) == (0, ["lost"])
    assert answer["messages"] == [{"id": "lost", "event_type": "mail", "state": "missing", "vouched": True}]
    assert (answer["found"], answer["put_back"], answer["vouched"]) == (
        {"missing": {"mail": 1}},
        {"mail": 1},
        1,
    )


def test_it_asks_the_operator_to_confirm_that_the_messages_were_never_sent(stage: RepairStage) -> None:
    stage.put(mail("lost"))
    result = run("reconcile", "lost", typed="n\n")
    assert result.exit_code == 1
    assert "lost (mail): missing" in result.stdout
    assert (
        "Requeue 1 message of dev? The ledger may have forgotten 1 of them. Confirm that they were never "
        "sent. A message that was sent would be sent again." in result.stderr
    )
    assert not stage.functions.invoked
    assert run("reconcile", "lost", typed="y\n").exit_code == 0
    assert requeued(stage) == ["lost"]


def test_what_a_ledger_that_has_forgotten_nothing_does_not_know_needs_nobodys_word(
    stage: RepairStage,
) -> None:
    for table in (MAILBOX, LEDGER):
        stage.made(table, time.time() - 86_400)
    stage.put(mail("lost"))
    asked = run("reconcile", "lost", typed="n\n")
    assert "Requeue 1 message of dev? [y/N]" in asked.stderr
    assert reconciled("lost", "--yes")[1]["vouched"] == 0


def test_what_the_ledger_knows_is_judged_as_ever(stage: RepairStage) -> None:
    stage.failed("over", status="sent")
    stage.know("begun", status="sending", startedAt=1)
    stage.know("begun just now", status="sending", updatedAt=iso(time.time()))
    stage.know("lies", status="sending", dead_lettered_at=round(time.time() * 1000))
    names = ("over", "begun", "begun just now", "lies")
    stage.put(*map(mail, names))
    code, answer = reconciled(*names, "--yes")
    assert states(answer) == {
        "over": "moving",
        "begun": "overdue",
        "begun just now": "moving",
        "lies": "dead_letters",
    }
    assert (code, [each["id"] for each in stage.bodies("mail")]) == (1, ["begun"])
    assert not stage.functions.invoked


def test_one_that_is_over_leaves_nothing_to_do_and_exits_with_0(stage: RepairStage) -> None:
    stage.failed("over", status="sent")
    result = run("reconcile", "over")
    assert result.exit_code == 0
    assert "over (mail): on its way, or over" in result.stdout
    assert "1 named looked at; 0 requeued." in result.stdout


def test_one_that_there_is_not_is_said_to_be_unknown_and_exits_with_1(stage: RepairStage) -> None:
    stage.put(mail("lost"))
    code, answer = reconciled("nowhere", "lost", "--yes")
    assert (code, states(answer), requeued(stage)) == (1, {"nowhere": "unknown", "lost": "missing"}, ["lost"])
    assert "nowhere: not in the mailbox and not in the ledger" in run("reconcile", "nowhere").stdout


def test_an_id_of_two_channels_needs_the_channel(stage: RepairStage) -> None:
    stage.put(mail("a"), {"id": "a", "event_type": "sms", "to": "+16175551234", "text": "Hi"})
    result = run("reconcile", "a", "--yes")
    assert result.exit_code == 2
    assert "a: mail and sms have messages with that id; choose one with --channel." in result.stderr
    assert not stage.functions.invoked
    code, answer = reconciled("a", "--channel", "sms", "--yes")
    assert (code, answer["put_back"]) == (0, {"sms": 1})


@pytest.mark.parametrize(
    "piped",
    [
        "a\nb\n",
        json.dumps({"stage": "dev", "more": False, "found": [{"id": "a", "event_type": "mail"}, "b"]}),
    ],
    ids=["lines", "object"],
)
def test_ids_are_read_from_what_is_piped_in(stage: RepairStage, piped: str) -> None:
    stage.put(mail("a"), mail("b"), mail("c"))
    code, answer = reconciled("-", "b", "--yes", typed=piped)
    assert (code, sorted(requeued(stage))) == (0, ["a", "b"])
    assert sorted(states(answer)) == ["a", "b"]


def test_nothing_piped_in_is_nothing_to_do_and_not_the_whole_stage(stage: RepairStage) -> None:
    stage.put(mail("a"))
    code, answer = reconciled("-", "--include-forgotten", "--older-than", "0s", "--yes", typed="")
    assert (code, answer["messages"], answer["found"], requeued(stage)) == (0, [], {}, [])


def test_what_is_piped_in_cannot_be_asked_about(stage: RepairStage) -> None:
    stage.put(mail("a"))
    result = run("reconcile", "-", typed="a\n")
    assert result.exit_code == 2
    assert "Requeue 1 message of dev?" in result.stderr
    assert "Standard input is taken" in result.stderr
    assert "use --yes" in result.stderr
    assert not stage.functions.invoked


def test_a_dry_run_puts_nothing_back_and_exits_with_1(stage: RepairStage) -> None:
    stage.put(mail("lost"))
    code, answer = reconciled("lost", "--dry-run")
    assert (code, answer["found"], requeued(stage)) == (1, {"missing": {"mail": 1}}, [])


def test_a_channel_without_ids_is_refused(stage: RepairStage) -> None:
    stage.put(mail("a"))
    result = run("reconcile", "--channel", "mail")
    assert result.exit_code == 2
    assert "--channel needs ids: give ids too" in result.stderr


def test_a_fax_that_was_begun_goes_back_though_its_item_is_gone(stage: RepairStage) -> None:
    stage.know("held", "fax", status="sending", attempts=1)
    assert reconciled("held", "--yes")[1]["put_back"] == {"fax": 1}
    assert len(stage.functions.records("outcomes")) == 1


def test_what_others_wrote_reaches_no_terminal_as_control_characters(stage: RepairStage) -> None:
    stage.dynamodb.put_item(TableName=MAILBOX, Item=typed(mail("\x1b[31mred[/]")))
    result = run("reconcile", "\x1b[31mred[/]", "--dry-run")
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    assert "red[/]" in result.stdout
