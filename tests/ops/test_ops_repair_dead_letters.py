"""Dead letters put back: in order, and never lost on the way."""

import json
from typing import Any

import pytest
import typer

from mailroom_ops.repair.resend import resend
from tests.support.ops.dead_letters import DeadLettersStage, with_dead_letters
from tests.support.ops.run_app import run_app

STAGE = with_dead_letters
app = typer.Typer()
app.command()(resend)
MAIL = {"id": "m-1", "event_type": "mail", "to": "ada@example.com"}


def two_letters(stage: DeadLettersStage) -> None:
    stage.send("mail-dlq", MAIL)
    stage.send("mail-dlq", {**MAIL, "id": "m-2"})


def redriven(*ids: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what became of the queue mail."""
    result = run_app(app, "--dead-letters", "mail", *ids, "--yes", "--json")
    (queue,) = json.loads(result.stdout)["queues"]
    return result.exit_code, queue


def test_a_redrive_shows_the_number_of_letters_and_requires_a_confirmation(stage: DeadLettersStage) -> None:
    two_letters(stage)
    result = run_app(app, "--dead-letters", "mail", typed="n\n")
    assert result.exit_code == 1
    assert "about 2 dead letters of mail go back into that queue" in result.stdout
    assert "Messages that were sent already are not sent again" in result.stdout
    assert len(stage.waiting("mail-dlq")) == 2


def test_a_dry_run_of_a_redrive_leaves_each_letter_in_the_dead_letter_queue(stage: DeadLettersStage) -> None:
    two_letters(stage)
    result = run_app(app, "--dead-letters", "mail", "--dry-run", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "stage": "dev",
        "dry_run": True,
        "queues": [{"queue": "mail", "found": 2, "moved": 0, "left": 2}],
    }
    assert len(stage.waiting("mail-dlq")) == 2


@pytest.mark.usefixtures("stage")
def test_a_redrive_of_an_empty_dead_letter_queue_exits_with_0() -> None:
    result = run_app(app, "--dead-letters", "mail", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["queues"] == []
    assert run_app(app, "--dead-letters", "all").stdout == "No dead letters in dev.\n"


# Moved letters.


def test_a_redrive_moves_dead_letters_to_the_queue_from_which_they_came(stage: DeadLettersStage) -> None:
    two_letters(stage)
    assert redriven() == (0, {"queue": "mail", "found": 2, "moved": 2, "left": 0})
    assert sorted(json.loads(each)["id"] for each in stage.bodies("mail")) == ["m-1", "m-2"]
    assert not stage.waiting("mail-dlq")


def test_a_redrive_keeps_the_body_and_attributes_of_a_letter_without_the_error_of_the_scheduler(
    stage: DeadLettersStage,
) -> None:
    text = {"DataType": "String", "StringValue": "x"}
    attributes = {"channel": text, "ERROR_CODE": text, "ERROR_MESSAGE": text}
    start = {"campaign": "weekly", "scheduled_at": "2026-11-21T14:00:00Z"}
    stage.send("collect-dlq", start, MessageAttributes=attributes)
    assert run_app(app, "--dead-letters", "collect", "--yes").exit_code == 0
    (moved,) = stage.waiting("collect")
    assert json.loads(moved["Body"]) == start
    assert moved["MessageAttributes"].keys() == {"channel"}


def test_a_redrive_keeps_the_group_and_the_order_of_the_letters_of_a_fifo_queue(
    stage: DeadLettersStage,
) -> None:
    for number in range(3):
        more = {"MessageGroupId": "+16175551234", "MessageDeduplicationId": f"d-{number}"}
        stage.send("fax-dlq.fifo", {"fax_id": f"f-{number}"}, **more)
    assert run_app(app, "--dead-letters", "fax", "--yes").exit_code == 0
    moved = stage.waiting("fax.fifo")
    assert [json.loads(each["Body"])["fax_id"] for each in moved] == ["f-0", "f-1", "f-2"]
    assert {each["Attributes"]["MessageGroupId"] for each in moved} == {"+16175551234"}


def test_a_redriven_fax_gets_a_new_deduplication_id_so_that_sqs_delivers_it(stage: DeadLettersStage) -> None:
    """SQS accepts and does not deliver what has an id that it knows of the last five minutes."""
    order = {"MessageGroupId": "+16175551234", "MessageDeduplicationId": "f-1"}
    stage.send("fax.fifo", {"fax_id": "f-1"}, **order)
    stage.sqs.purge_queue(QueueUrl=stage.urls["fax.fifo"])
    stage.send("fax-dlq.fifo", {"fax_id": "f-1"}, **order)
    assert run_app(app, "--dead-letters", "fax", "--yes").exit_code == 0
    (moved,) = stage.waiting("fax.fifo")
    assert moved["Attributes"]["MessageDeduplicationId"] != "f-1"


def test_a_redrive_of_chosen_messages_counts_one_without_a_letter_although_another_has_two_letters(
    stage: DeadLettersStage,
) -> None:
    """Two dead letters of one message do not make up for a missing letter of another message."""
    stage.send("mail-dlq", MAIL)
    stage.send("mail-dlq", MAIL)
    assert redriven("m-1", "m-9") == (1, {"queue": "mail", "found": 2, "moved": 2, "left": 1})


def test_a_redrive_moves_each_chosen_letter_once_although_the_count_of_sqs_is_wrong(
    stage: DeadLettersStage,
) -> None:
    two_letters(stage)
    none = {"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0"}

    def counts(**_: Any) -> Any:
        return {"Attributes": none}

    def comes_back(**arguments: Any) -> Any:
        entries = arguments["Entries"]
        return stage.sqs.send_message_batch(QueueUrl=stage.urls["mail-dlq"], Entries=entries)

    stage.sqs_calls = {
        "get_queue_attributes": counts,
        "send_message_batch": comes_back,
    }
    assert redriven("m-1", "m-2") == (0, {"queue": "mail", "found": 0, "moved": 2, "left": 0})


def test_a_redrive_of_chosen_letters_moves_those_and_makes_the_others_visible_again(
    stage: DeadLettersStage,
) -> None:
    two_letters(stage)
    own = stage.send("mail-dlq", "nonsense")
    assert redriven("m-2", own) == (0, {"queue": "mail", "found": 3, "moved": 2, "left": 0})
    assert sorted(stage.bodies("mail")) == sorted([json.dumps({**MAIL, "id": "m-2"}), "nonsense"])
    assert stage.bodies("mail-dlq") == [json.dumps(MAIL)]


def test_a_letter_that_the_queue_refuses_stays_in_the_dead_letter_queue(stage: DeadLettersStage) -> None:
    two_letters(stage)
    failed = {"Failed": [{"Id": "0", "Code": "x", "SenderFault": False}], "Successful": [{"Id": "1"}]}
    stage.sqs_calls = {"send_message_batch": lambda **_: failed}
    assert redriven() == (1, {"queue": "mail", "found": 2, "moved": 1, "left": 1})
    assert len(stage.waiting("mail-dlq")) == 1


def test_a_crash_during_a_redrive_leaves_a_copy_in_both_queues_and_the_rest_in_place(
    stage: DeadLettersStage,
) -> None:
    two_letters(stage)

    def dies(**_: Any) -> Any:
        raise RuntimeError("killed")

    stage.sqs_calls = {"delete_message_batch": dies}
    assert isinstance(run_app(app, "--dead-letters", "mail", "--yes").exception, RuntimeError)
    assert len(stage.waiting("mail-dlq")) == 2
    assert len(stage.waiting("mail")) == 2


def test_a_redrive_moves_a_letter_once_although_it_becomes_a_dead_letter_again_at_once(
    stage: DeadLettersStage,
) -> None:
    """A letter that dies again at once would otherwise go round for ever."""
    two_letters(stage)

    def comes_back(**arguments: Any) -> Any:
        entries = arguments["Entries"]
        return stage.sqs.send_message_batch(QueueUrl=stage.urls["mail-dlq"], Entries=entries)

    stage.sqs_calls = {"send_message_batch": comes_back}
    assert redriven()[1]["moved"] == 2
