"""Dead letters put back: in order and at a rate, and never lost on the way."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from ops.dead_letters.command import app
from ops.dead_letters.queues import DeadQueues
from ops.dead_letters.redrive import DeadLetterMover
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.dead_letters import Stage, run

MAIL = {"id": "m-1", "event_type": "mail", "to": "ada@example.com"}


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with mock_aws(), in_memory_dynamodb():
        stage = Stage()
        monkeypatch.setattr("boto3.Session", lambda: stage)
        monkeypatch.setattr("ops.dead_letters.redrive.LONG_POLL_SECONDS", 0)
        yield stage


def two_letters(stage: Stage) -> None:
    stage.send("mail-dlq", MAIL)
    stage.send("mail-dlq", {**MAIL, "id": "m-2"})


def test_it_says_how_many_and_asks_first(stage: Stage) -> None:
    two_letters(stage)
    result = run(app, "redrive", "--queue", "mail", typed="n\n")
    assert result.exit_code == 1
    assert "about 2 dead letters of mail (dev) go back into that queue" in result.stdout
    assert "The ledger drops messages that were sent already" in result.stdout
    assert len(stage.waiting("mail-dlq")) == 2


def test_a_dry_run_moves_nothing(stage: Stage) -> None:
    two_letters(stage)
    result = run(app, "redrive", "--queue", "mail", "--dry-run", "--json")
    assert result.exit_code == 0
    answered = json.loads(result.stdout)
    assert (answered["dry_run"], answered["state"], answered["moved"]) == (True, "nothing", 0)
    assert len(stage.waiting("mail-dlq")) == 2


@pytest.mark.usefixtures("stage")
def test_an_empty_queue_is_nothing_to_do() -> None:
    result = run(app, "redrive", "--queue", "mail", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["state"] == "nothing"


# what moves


def test_the_letters_are_moved_to_their_own_queue(stage: Stage) -> None:
    two_letters(stage)
    result = run(app, "redrive", "--queue", "mail", "--yes", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "stage": "dev",
        "queue": "mail",
        "destination": "mailroom-dev-mail",
        "dry_run": False,
        "state": "done",
        "found": 2,
        "moved": 2,
        "left": 0,
        "reason": None,
    }
    assert sorted(json.loads(each)["id"] for each in stage.bodies("mail")) == ["m-1", "m-2"]
    assert not stage.waiting("mail-dlq")


def test_body_attributes_and_group_go_along_but_not_what_the_scheduler_said(stage: Stage) -> None:
    text = {"DataType": "String", "StringValue": "x"}
    attributes = {"channel": text, "ERROR_CODE": text, "ERROR_MESSAGE": text}
    stage.send("scheduled-dlq", {"id": "m-1", "event_type": "mail"}, MessageAttributes=attributes)
    assert run(app, "redrive", "--queue", "scheduled", "--yes").exit_code == 0
    (moved,) = stage.waiting("scheduled")
    assert json.loads(moved["Body"]) == {"id": "m-1", "event_type": "mail"}
    assert moved["MessageAttributes"].keys() == {"channel"}


def test_a_fifo_queues_letters_keep_group_and_order(stage: Stage) -> None:
    for number in range(3):
        more = {"MessageGroupId": "+16175551234", "MessageDeduplicationId": f"d-{number}"}
        stage.send("fax-dlq.fifo", {"fax_id": f"f-{number}"}, **more)
    assert run(app, "redrive", "--queue", "fax", "--yes").exit_code == 0
    moved = stage.waiting("fax.fifo")
    assert [json.loads(each["Body"])["fax_id"] for each in moved] == ["f-0", "f-1", "f-2"]
    assert {each["Attributes"]["MessageGroupId"] for each in moved} == {"+16175551234"}


def test_a_fax_that_was_sent_a_moment_ago_under_its_deduplication_id_is_not_lost(stage: Stage) -> None:
    """SQS accepts and does not deliver what has an id that it knows of the last five minutes."""
    order = {"MessageGroupId": "+16175551234", "MessageDeduplicationId": "f-1"}
    stage.send("fax.fifo", {"fax_id": "f-1"}, **order)
    stage.sqs.purge_queue(QueueUrl=stage.urls["fax.fifo"])
    stage.send("fax-dlq.fifo", {"fax_id": "f-1"}, **order)
    assert run(app, "redrive", "--queue", "fax", "--yes").exit_code == 0
    (moved,) = stage.waiting("fax.fifo")
    assert moved["Attributes"]["MessageDeduplicationId"] != "f-1"


def three_faxes(stage: Stage) -> list[str]:
    """Of one line; their letters' ids."""
    return [
        stage.send(
            "fax-dlq.fifo",
            {"fax_id": f"f-{number}", "to": "+16175551234", "pdf_url": "https://example.com/a.pdf"},
            MessageGroupId="+16175551234",
            MessageDeduplicationId=f"d-{number}",
        )
        for number in range(3)
    ]


def test_a_chosen_fax_does_not_overtake_those_before_it_and_they_are_named(stage: Stage) -> None:
    first, second, _ = three_faxes(stage)
    result = run(app, "redrive", "--queue", "fax", "--only", "f-2", "--yes", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["moved"], answer["left"]) == (1, 0, 1)
    assert f"f-2 stands behind {first}, {second}" in answer["reason"]
    assert not stage.waiting("fax.fifo")
    assert len(stage.waiting("fax-dlq.fifo")) == 3


def test_chosen_faxes_go_if_they_are_the_first_of_their_line(stage: Stage) -> None:
    three_faxes(stage)
    result = run(app, "redrive", "--queue", "fax", "--only", "f-1", "--only", "f-0", "--yes", "--json")
    assert (result.exit_code, json.loads(result.stdout)["reason"]) == (0, None)
    assert [json.loads(each)["fax_id"] for each in stage.bodies("fax.fifo")] == ["f-0", "f-1"]


def test_letters_and_ids_are_told_apart_where_only_some_are_chosen(stage: Stage) -> None:
    """Two letters of one message are no excuse for another that is not there."""
    stage.send("mail-dlq", MAIL)
    stage.send("mail-dlq", MAIL)
    result = run(app, "redrive", "--queue", "mail", "--only", "m-1", "--only", "m-9", "--yes", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["moved"], answer["left"]) == (1, 2, 1)


def test_chosen_letters_move_however_few_sqs_counts_and_none_twice(stage: Stage) -> None:
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
    result = run(app, "redrive", "--queue", "mail", "--only", "m-1", "--only", "m-2", "--yes", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["found"], answer["moved"], answer["left"]) == (0, 0, 2, 0)


def test_only_the_chosen_letters_move_and_the_others_are_there_for_everybody(stage: Stage) -> None:
    two_letters(stage)
    own = stage.send("mail-dlq", "nonsense")
    result = run(app, "redrive", "--queue", "mail", "--only", "m-2", "--only", own, "--yes", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["moved"] == 2
    assert sorted(stage.bodies("mail")) == sorted([json.dumps({**MAIL, "id": "m-2"}), "nonsense"])
    assert stage.bodies("mail-dlq") == [json.dumps(MAIL)]


def test_a_chosen_letter_that_is_not_there_exits_with_1(stage: Stage) -> None:
    two_letters(stage)
    result = run(app, "redrive", "--queue", "mail", "--only", "m-9", "--yes", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["left"] == 1


def test_a_letter_that_the_queue_does_not_take_stays_dead(stage: Stage) -> None:
    two_letters(stage)
    failed = {"Failed": [{"Id": "0", "Code": "x", "SenderFault": False}], "Successful": [{"Id": "1"}]}
    stage.sqs_calls = {"send_message_batch": lambda **_: failed}
    result = run(app, "redrive", "--queue", "mail", "--yes", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["left"] == 1
    assert len(stage.waiting("mail-dlq")) == 1


def test_nothing_is_deleted_before_it_was_sent(stage: Stage) -> None:
    two_letters(stage)
    order: list[str] = []

    def noted(name: str) -> Any:
        def call(**arguments: Any) -> Any:
            order.append(name)
            return getattr(stage.sqs, name)(**arguments)

        return call

    calls = {name: noted(name) for name in ("send_message_batch", "delete_message_batch")}
    stage.sqs_calls = {**calls}
    run(app, "redrive", "--queue", "mail", "--yes")
    assert order == ["send_message_batch", "delete_message_batch"]


def test_a_process_that_dies_in_between_leaves_a_copy_in_both_and_the_rest_in_place(stage: Stage) -> None:
    two_letters(stage)

    def dies(**_: Any) -> Any:
        raise RuntimeError("killed")

    stage.sqs_calls = {"delete_message_batch": dies}
    assert isinstance(run(app, "redrive", "--queue", "mail", "--yes").exception, RuntimeError)
    assert len(stage.waiting("mail-dlq")) == 2
    assert len(stage.waiting("mail")) == 2


def test_the_rate_is_kept(stage: Stage) -> None:
    for number in range(12):
        stage.send("mail-dlq", {**MAIL, "id": f"m-{number}"})
    queues = DeadQueues(stage, "dev")
    (queue,) = queues.named("mail")
    slept: list[float] = []
    moving = DeadLetterMover(queues.client, queue, 4, clock=lambda: 0.0, sleep=slept.append)
    moved = sum(moving.move(12))
    assert moved == 12
    assert sum(slept) == 12 / 4


def test_no_more_are_moved_than_there_were(stage: Stage) -> None:
    """A letter that dies again at once would otherwise go round for ever."""
    two_letters(stage)

    def comes_back(**arguments: Any) -> Any:
        entries = arguments["Entries"]
        return stage.sqs.send_message_batch(QueueUrl=stage.urls["mail-dlq"], Entries=entries)

    stage.sqs_calls = {"send_message_batch": comes_back}
    answer = json.loads(run(app, "redrive", "--queue", "mail", "--yes", "--json").stdout)
    assert answer["moved"] == 2
