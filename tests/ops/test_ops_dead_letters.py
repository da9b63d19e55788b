"""Dead letters at the command line: counted, explained and shown, and never taken."""

import json
from typing import Any

import pytest
from typer import Typer

from mailroom_ops.repair.dead_letters import dead_letters
from tests.support.ops.dead_letters import DeadLettersStage, with_dead_letters
from tests.support.ops.run_app import run_app

STAGE = with_dead_letters
MAIL = {"id": "m-1", "event_type": "mail", "to": "ada@example.com"}
app = Typer()
app.command()(dead_letters)


def counts(queue: str, *options: str) -> dict[str, Any]:
    """The counts of a queue."""
    queues = json.loads(run_app(app, *options, "--json").stdout)["queues"]
    (of_queue,) = (each for each in queues if each["queue"] == queue)
    return dict(of_queue)


def test_messages_dead_letters_lists_each_queue_with_its_count_oldest_letter_and_causes(
    stage: DeadLettersStage,
) -> None:
    stage.send("mail-dlq", MAIL)
    stage.send("mail-dlq", "nonsense")
    result = run_app(app, "--json")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert (answer["stage"], answer["letters"]) == ("dev", 2)
    found = {each["queue"]: each for each in answer["queues"]}
    assert found.keys() == {"mail", "collect", "webhook", "audience", "fax"}
    assert found["mail"]["letters"] == 2
    assert found["mail"]["causes"] == {"unclaimed": 1, "malformed": 1}
    assert found["mail"]["oldest"].endswith("Z")
    assert found["fax"] == {
        "queue": "fax",
        "letters": 0,
        "hidden": 0,
        "looked_at": 0,
        "oldest": None,
        "causes": {},
    }


def test_the_cause_of_a_dead_letter_is_read_from_the_ledger(stage: DeadLettersStage) -> None:
    stage.send("mail-dlq", MAIL)
    trouble = {"code": "misconfigured", "message": "the sender is not verified"}
    stage.put("ledger", id="m-1", event_type="mail", status="sending", trouble=trouble)
    (found,) = json.loads(run_app(app, "--queue", "all", "--json").stdout)["letters"]
    assert found["cause"]["code"] == "misconfigured"
    assert found["cause"]["message"].startswith("the sender is not verified")
    assert (found["status"], found["last_error"]) == ("sending", trouble)


@pytest.mark.parametrize("name", ["fax", "fax.fifo", "fax-dlq.fifo", "mailroom-dev-fax.fifo"])
def test_messages_dead_letters_accepts_a_queue_by_any_of_its_names(
    stage: DeadLettersStage, name: str
) -> None:
    group = {"MessageGroupId": "+16175551234", "MessageDeduplicationId": "d-1"}
    stage.send("fax-dlq.fifo", {"fax_id": "f-1", "to": "+16175551234"}, **group)
    answer = json.loads(run_app(app, "--queue", name, "--json").stdout)
    assert [(each["queue"], each["id"]) for each in answer["letters"]] == [("fax", "f-1")]


@pytest.mark.usefixtures("stage")
def test_messages_dead_letters_exits_with_2_for_an_unknown_queue_and_lists_the_queues() -> None:
    result = run_app(app, "--queue", "pigeon")
    assert result.exit_code == 2
    assert "use one of audience, collect, fax, mail, webhook" in result.stderr


def test_a_dead_letter_is_found_by_the_id_of_its_message_and_by_its_own_id(stage: DeadLettersStage) -> None:
    own = stage.send("mail-dlq", MAIL)
    stage.send("mail-dlq", {**MAIL, "id": "m-2"})
    for which in ("m-1", own):
        answer = json.loads(run_app(app, which, "--json").stdout)
        assert [each["message_id"] for each in answer["letters"]] == [own]
        assert answer["looked_at"] == 2


@pytest.mark.usefixtures("stage")
def test_messages_dead_letters_exits_with_1_for_an_unknown_dead_letter() -> None:
    result = run_app(app, "nobody")
    assert (result.exit_code, result.stdout) == (
        1,
        "No such dead letter among the 0 that were read in dev.\n",
    )


def test_the_body_of_a_dead_letter_is_printed_only_with_the_option_body(stage: DeadLettersStage) -> None:
    stage.send("mail-dlq", MAIL)
    assert "ada@example.com" not in run_app(app, "--queue", "all").stdout
    assert "ada@example.com" not in run_app(app, "--queue", "all", "--json").stdout
    assert "ada@example.com" in run_app(app, "--queue", "all", "--body").stdout


def test_a_dead_letter_queue_that_cannot_be_read_to_its_end_is_named_as_incomplete(
    stage: DeadLettersStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom.dead_letters.queue.MAX_HELD", 10)
    for number in range(12):
        stage.send("mail-dlq", {**MAIL, "id": f"m-{number}"})
    answer = json.loads(run_app(app, "nobody", "--json").stdout)
    assert (answer["looked_at"], answer["incomplete"]) == (10, ["mail"])
    assert "Some dead letters in mail could not be read" in run_app(app, "nobody").stdout
    listed = counts("mail")
    assert (listed["letters"], listed["looked_at"]) == (12, 10)
    assert len(stage.waiting("mail-dlq")) == 10  # of one call: none was kept hidden


def test_the_fax_queue_is_named_as_incomplete_if_dead_letters_lock_others_of_their_line(
    stage: DeadLettersStage,
) -> None:
    for number in range(12):
        more = {"MessageGroupId": "+1", "MessageDeduplicationId": f"d-{number}"}
        stage.send("fax-dlq.fifo", {"fax_id": f"f-{number}"}, **more)
    received: list[int] = []

    def first_ten(**arguments: object) -> object:
        received.append(1)
        return stage.sqs.receive_message(**arguments) if len(received) == 1 else {}

    stage.sqs_calls = {"receive_message": first_ten}
    answer = json.loads(run_app(app, "nobody", "--queue", "fax", "--json").stdout)
    assert (answer["looked_at"], answer["incomplete"]) == (10, ["fax"])


def test_dead_letters_that_are_received_again_do_not_end_the_reading_of_a_queue(
    stage: DeadLettersStage,
) -> None:
    """In a large queue the first letters are visible again before the last were seen."""
    stage.send("mail-dlq", MAIL)
    again: list[dict[str, object]] = []

    def receive(**arguments: object) -> object:
        if again:
            return again.pop()
        reply = stage.sqs.receive_message(**arguments)
        if stage.waiting("mail-dlq") or not reply.get("Messages") or "m-2" in str(reply):
            return reply
        again.extend([reply] * 4)
        stage.send("mail-dlq", {**MAIL, "id": "m-2"})
        return reply

    stage.sqs_calls = {"receive_message": receive}
    answer = json.loads(run_app(app, "m-2", "--queue", "mail", "--json").stdout)
    assert ([each["id"] for each in answer["letters"]], answer["incomplete"]) == (["m-2"], [])


def test_the_option_limit_bounds_the_number_of_printed_dead_letters(stage: DeadLettersStage) -> None:
    for number in range(4):
        stage.send("mail-dlq", {**MAIL, "id": f"m-{number}"})
    shown = json.loads(run_app(app, "--queue", "all", "--limit", "3", "--json").stdout)
    assert (len(shown["letters"]), shown["more"]) == (3, True)
    assert "More: --limit 30" in run_app(app, "--queue", "all", "--limit", "3").stdout
    shown = json.loads(run_app(app, "--queue", "all", "--limit", "4", "--json").stdout)
    assert (len(shown["letters"]), shown["more"]) == (4, False)
    assert "More" not in run_app(app, "--queue", "all", "--limit", "4").stdout
    assert len(stage.waiting("mail-dlq")) == 4


def test_the_option_limit_bounds_the_number_of_dead_letters_that_a_count_reads(
    stage: DeadLettersStage,
) -> None:
    for number in range(12):
        stage.send("mail-dlq", {**MAIL, "id": f"m-{number}"})
    mail = counts("mail", "--limit", "5")
    assert (mail["letters"], mail["looked_at"], mail["causes"]) == (12, 5, {"unclaimed": 5})
    assert "More: --limit 12" in run_app(app, "--limit", "5").stdout
    assert "More" not in run_app(app).stdout


def test_dead_letters_are_selected_by_the_time_when_they_were_queued(stage: DeadLettersStage) -> None:
    stage.send("mail-dlq", MAIL)
    stage.send("mail-dlq", {**MAIL, "id": "m-2"})
    seconds = {"m-1": 2, "m-2": 5}

    def receive(**arguments: object) -> object:
        reply = stage.sqs.receive_message(**arguments)
        for letter in reply.get("Messages", []):
            sent_at = seconds[json.loads(letter["Body"])["id"]] * 1_000
            letter["Attributes"]["SentTimestamp"] = str(sent_at)
        return reply

    stage.sqs_calls = {"receive_message": receive}
    for options, names in (
        (("--since", "1970-01-01T00:00:03Z"), ["m-2"]),
        (("--until", "1970-01-01T00:00:05Z"), ["m-1"]),
        (("--since", "1970-01-01T00:00:02Z", "--until", "1970-01-01T00:00:06Z"), ["m-1", "m-2"]),
        (("--since", "1970-01-01T00:00:06Z"), []),
    ):
        shown = json.loads(run_app(app, "--queue", "mail", *options, "--json").stdout)
        assert sorted(letter["id"] for letter in shown["letters"]) == names
        mail = counts("mail", *options)
        assert (mail["letters"], mail["causes"]) == (2, {"unclaimed": len(names)} if names else {})
        first = min((seconds[name] for name in names), default=None)
        assert mail["oldest"] == (first and f"1970-01-01T00:00:0{first}.000Z")
