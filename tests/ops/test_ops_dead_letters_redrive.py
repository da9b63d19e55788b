"""Dead letters put back: by SQS's own task where there is one, else one by one, and never lost on the way."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from ops.dead_letters.command import app
from ops.dead_letters.mover import DeadLetterMover
from ops.dead_letters.queues import DeadQueues
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.dead_letters import Stage, run, unknown_call

MAIL = {"id": "m-1", "event_type": "mail", "to": "ada@example.com"}


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with mock_aws(), in_memory_dynamodb():
        stage = Stage()
        monkeypatch.setattr("boto3.Session", lambda: stage)
        monkeypatch.setattr("ops.dead_letters.mover.LONG_POLL_SECONDS", 0)
        yield stage


class Tasks:
    """SQS's tasks: one that tells of these states, one after another, once it was started."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self.states = list(states)
        self.started: list[dict[str, Any]] = []
        self.cancelled: list[str] = []
        self.asked = 0
        self.interrupt_at = -1

    def calls(self) -> dict[str, Any]:
        return {
            "list_message_move_tasks": self._list,
            "start_message_move_task": self._start,
            "cancel_message_move_task": self._cancel,
        }

    def _list(self, **_: Any) -> Any:
        if not self.started:
            return {"Results": []}
        self.asked += 1
        if self.asked == self.interrupt_at:
            raise KeyboardInterrupt
        state = self.states[0] if len(self.states) == 1 else self.states.pop(0)
        return {"Results": [{"StartedTimestamp": 2, **state}, {"Status": "FAILED", "StartedTimestamp": 1}]}

    def _start(self, **arguments: Any) -> Any:
        self.started.append(arguments)
        return {"TaskHandle": "h"}

    def _cancel(self, **arguments: Any) -> Any:
        self.cancelled.append(arguments["TaskHandle"])
        self.states = [{**self.states[0], "Status": "CANCELLED"}]


def running(moved: int) -> dict[str, Any]:
    return {
        "Status": "RUNNING",
        "TaskHandle": "h",
        "ApproximateNumberOfMessagesMoved": moved,
        "ApproximateNumberOfMessagesToMove": 2,
    }


def done(moved: int, status: str = "COMPLETED", **more: Any) -> dict[str, Any]:
    return {**running(moved), "Status": status, **more}


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.dead_letters.redrive.POLL_SECONDS", 0)


def two_letters(stage: Stage) -> None:
    stage.send("mail-dlq", MAIL)
    stage.send("mail-dlq", {**MAIL, "id": "m-2"})


# by SQS's own task


@pytest.mark.usefixtures("no_waiting")
def test_a_task_goes_to_the_letters_own_queue_at_the_rate_and_is_followed_to_its_end(stage: Stage) -> None:
    two_letters(stage)
    tasks = Tasks(running(0), running(1), done(2))
    stage.sqs_calls = tasks.calls()
    result = run(app, "redrive", "--queue", "mail", "--rate", "20", "--yes", "--json")
    assert result.exit_code == 0
    assert tasks.started == [
        {
            "SourceArn": "arn:aws:sqs:us-east-1:123456789012:mailroom-dev-mail-dlq",
            "DestinationArn": "arn:aws:sqs:us-east-1:123456789012:mailroom-dev-mail",
            "MaxNumberOfMessagesPerSecond": 20,
        }
    ]
    assert json.loads(result.stdout) == {
        "stage": "dev",
        "queue": "mail",
        "destination": "mailroom-dev-mail",
        "dry_run": False,
        "state": "done",
        "way": "move_task",
        "found": 2,
        "moved": 2,
        "left": 0,
        "reason": None,
    }


@pytest.mark.usefixtures("no_waiting")
def test_a_fifo_queues_letters_go_to_its_fifo_queue_by_a_task_too(stage: Stage) -> None:
    stage.send("fax-dlq.fifo", MAIL, MessageGroupId="+1", MessageDeduplicationId="d")
    tasks = Tasks(done(1, ApproximateNumberOfMessagesToMove=1))
    stage.sqs_calls = tasks.calls()
    assert run(app, "redrive", "--queue", "fax", "--yes").exit_code == 0
    assert tasks.started[0]["DestinationArn"].endswith(":mailroom-dev-fax.fifo")


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("status", ["FAILED", "CANCELLED"])
def test_a_task_that_does_not_reach_its_end_exits_with_1_and_says_why(stage: Stage, status: str) -> None:
    two_letters(stage)
    stage.sqs_calls = Tasks(done(1, status, FailureReason="AccessDenied")).calls()
    result = run(app, "redrive", "--queue", "mail", "--yes", "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert (answer["state"], answer["moved"], answer["left"]) == (status.lower(), 1, 1)
    assert answer["reason"] == "AccessDenied"


@pytest.mark.usefixtures("no_waiting")
def test_a_task_that_runs_already_is_followed_and_no_second_one_started(stage: Stage) -> None:
    two_letters(stage)
    tasks = Tasks(running(1), done(2))
    tasks.started = [{"by": "somebody"}]
    stage.sqs_calls = tasks.calls()
    result = run(app, "redrive", "--queue", "mail", "--yes")
    assert result.exit_code == 0
    assert "A task is at it already: 1 moved" in result.stdout
    assert len(tasks.started) == 1


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize(
    ("typed", "cancelled", "state"),
    [("y\n", ["h"], "cancelled"), ("n\n", [], "running"), ("", [], "running")],
)
def test_ctrl_c_asks_whether_the_task_shall_end_too(
    stage: Stage, typed: str, cancelled: list[str], state: str
) -> None:
    two_letters(stage)
    tasks = Tasks(running(1))
    tasks.interrupt_at = 2
    stage.sqs_calls = tasks.calls()
    result = run(app, "redrive", "--queue", "mail", "--yes", "--json", typed=typed)
    assert tasks.cancelled == cancelled
    assert result.exit_code == 1
    assert json.loads(result.stdout.splitlines()[-1])["state"] == state


OLD = {"Status": "COMPLETED", "StartedTimestamp": 7, "ApproximateNumberOfMessagesMoved": 40}


def late(tasks: Tasks, polls: int) -> dict[str, Any]:
    """Calls of an SQS that tells of an older task alone, and of the one just started after some polls."""
    asked: list[int] = []

    def listed(**_: Any) -> Any:
        if tasks.started:
            asked.append(1)
        if len(asked) <= polls:
            return {"Results": [OLD]}
        return {"Results": [OLD, {**tasks.states[0], "StartedTimestamp": 8}]}

    return {**tasks.calls(), "list_message_move_tasks": listed}


@pytest.mark.usefixtures("no_waiting")
def test_an_older_task_is_not_taken_for_the_one_just_started(stage: Stage) -> None:
    two_letters(stage)
    stage.sqs_calls = late(Tasks(done(1, "FAILED")), polls=3)
    answer = json.loads(run(app, "redrive", "--queue", "mail", "--yes", "--json").stdout)
    assert (answer["state"], answer["moved"]) == ("failed", 1)


@pytest.mark.usefixtures("no_waiting")
def test_a_task_that_sqs_never_tells_of_is_left_running_and_not_called_done(stage: Stage) -> None:
    two_letters(stage)
    stage.sqs_calls = late(Tasks(done(2)), polls=1000)
    result = run(app, "redrive", "--queue", "mail", "--yes", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["state"], answer["moved"]) == (1, "running", 0)
    assert "does not tell of it" in answer["reason"]


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize(
    ("started", "state", "found", "asks"),
    [
        (False, done(2), ("cancelled", 0), False),
        (True, done(2), ("done", 2), False),
        (True, running(1), ("running", 1), True),
    ],
)
def test_ctrl_c_while_a_task_is_started_is_answered_by_what_really_runs(
    stage: Stage, started: bool, state: dict[str, Any], found: tuple[str, int], asks: bool
) -> None:
    two_letters(stage)
    tasks = Tasks(state)

    def cut_off(**arguments: Any) -> Any:
        if started:
            tasks.started.append(arguments)
        raise KeyboardInterrupt

    stage.sqs_calls = {**late(tasks, 0), "start_message_move_task": cut_off}
    result = run(app, "redrive", "--queue", "mail", "--yes", "--json", typed="n\n")
    answer = json.loads(result.stdout.splitlines()[-1])
    assert (answer["state"], answer["moved"]) == found
    assert ("Cancel the task?" in result.output) == asks


@pytest.mark.usefixtures("no_waiting")
def test_ctrl_c_before_a_task_is_started_is_not_answered_by_an_older_one(stage: Stage) -> None:
    two_letters(stage)
    asked: list[int] = []

    def listed(**_: Any) -> Any:
        asked.append(1)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return {"Results": [OLD]}

    stage.sqs_calls = {**Tasks(done(2)).calls(), "list_message_move_tasks": listed}
    answer = json.loads(run(app, "redrive", "--queue", "mail", "--yes", "--json").stdout)
    assert (answer["state"], answer["moved"], answer["left"]) == ("cancelled", 0, 2)


def test_what_sqs_refuses_is_no_reason_to_do_it_otherwise(stage: Stage) -> None:
    two_letters(stage)

    def refused(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "ListMessageMoveTasks")

    stage.sqs_calls = {"list_message_move_tasks": refused}
    result = run(app, "redrive", "--queue", "mail", "--yes")
    assert result.exit_code == 2
    assert len(stage.waiting("mail-dlq")) == 2


# before


def test_it_says_how_many_and_asks_first(stage: Stage) -> None:
    two_letters(stage)
    result = run(app, "redrive", "--queue", "mail", typed="n\n")
    assert result.exit_code == 1
    assert "about 2 dead letters of mail (dev) go back into that queue" in result.stdout
    assert "dropped by the ledger" in result.stdout
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


# one by one


def test_without_tasks_the_letters_are_moved_one_by_one_and_it_says_so(stage: Stage) -> None:
    two_letters(stage)
    result = run(app, "redrive", "--queue", "mail", "--yes")
    assert result.exit_code == 0
    assert "this command moves them, one after another" in result.stdout
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

    def counts(**arguments: Any) -> Any:
        if "QueueArn" in arguments["AttributeNames"]:
            return stage.sqs.get_queue_attributes(**arguments)
        return {"Attributes": none}

    def comes_back(**arguments: Any) -> Any:
        entries = arguments["Entries"]
        return stage.sqs.send_message_batch(QueueUrl=stage.urls["mail-dlq"], Entries=entries)

    stage.sqs_calls = {
        "list_message_move_tasks": unknown_call,
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
    stage.sqs_calls = {"list_message_move_tasks": unknown_call, "send_message_batch": lambda **_: failed}
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
    stage.sqs_calls = {"list_message_move_tasks": unknown_call, **calls}
    run(app, "redrive", "--queue", "mail", "--yes")
    assert order == ["send_message_batch", "delete_message_batch"]


def test_a_process_that_dies_in_between_leaves_a_copy_in_both_and_the_rest_in_place(stage: Stage) -> None:
    two_letters(stage)

    def dies(**_: Any) -> Any:
        raise RuntimeError("killed")

    stage.sqs_calls = {"list_message_move_tasks": unknown_call, "delete_message_batch": dies}
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

    stage.sqs_calls = {"list_message_move_tasks": unknown_call, "send_message_batch": comes_back}
    answer = json.loads(run(app, "redrive", "--queue", "mail", "--yes", "--json").stdout)
    assert answer["moved"] == 2
