"""`resend` where AWS fails for one message: the others go, and that one is named with its way back."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from tests.support.ops.repair import RepairStage, repair_stage, run, run_resend
from tests.support.pipeline.items import mail_item
from tests.support.unit.fakes import client_error

STAGE = repair_stage
IDS = ("a", "b", "c")
OUT_OF_REACH = ReadTimeoutError(endpoint_url="https://dynamodb")


@pytest.fixture
def stage(stage: RepairStage) -> RepairStage:
    """Three mails that failed."""
    for id_ in IDS:
        stage.failed(id_)
        stage.put(mail_item(id_))
    return stage


def failing_for(
    call: Callable[..., Any], id_: str, fault: Exception, *, after: int = 0, done: bool = False
) -> Callable[..., Any]:
    """The call, failing for one message, from its `after`th time on; `done`: it is done all the same."""
    met = [0]

    def called(**arguments: Any) -> Any:
        if f"'{id_}'" not in str({**arguments.get("Key", {}), **arguments["ExpressionAttributeValues"]}):
            return call(**arguments)
        met[0] += 1
        if met[0] <= after:
            return call(**arguments)
        if done:
            call(**arguments)
        raise fault

    return called


def queued(stage: RepairStage) -> list[str]:
    return sorted(each["id"] for each in stage.bodies("mail"))


@pytest.mark.parametrize(
    "fault", [client_error("ThrottlingException"), OUT_OF_REACH], ids=["throttled", "out of reach"]
)
def test_a_message_that_cannot_be_reopened_is_named_and_the_others_are_queued(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    monkeypatch.setattr(stage.dynamodb, "update_item", failing_for(stage.dynamodb.update_item, "b", fault))
    code, found = run_resend(*IDS)
    assert (code, {id_: each["result"] for id_, each in found.items()}) == (
        1,
        {"a": "resent", "b": "unqueued", "c": "resent"},
    )
    assert "it may be reopened, but is not queued" in found["b"]["why"]
    assert found["b"]["why"].endswith("; run this again")
    assert queued(stage) == ["a", "c"]


def test_the_next_resend_queues_a_message_whose_reopening_had_a_lost_response(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        lost = failing_for(stage.dynamodb.update_item, "b", OUT_OF_REACH, done=True)
        broken.setattr(stage.dynamodb, "update_item", lost)
        assert run_resend(*IDS)[1]["b"]["result"] == "unqueued"
    assert stage.ledger("b")["status"] == "retrying"
    assert run("resend", "b").exit_code == 0
    assert queued(stage) == ["a", "b", "c"]


def test_a_resend_leaves_a_message_that_it_cannot_read_again_and_queues_the_others(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The ledger's item and the mailbox's are asked once for the look.
    failing = failing_for(stage.dynamodb.query, "b", client_error("ThrottlingException"), after=2)
    monkeypatch.setattr(stage.dynamodb, "query", failing)
    code, found = run_resend(*IDS)
    assert (code, found["b"]["result"]) == (1, "refused")
    assert "could not be read, and was not changed" in found["b"]["why"]
    assert "completedAt" in stage.ledger("b")
    assert queued(stage) == ["a", "c"]


def test_a_resend_whose_first_read_fails_exits_with_2_and_leaves_each_message_unchanged(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = failing_for(stage.dynamodb.query, "b", client_error("ThrottlingException"))
    monkeypatch.setattr(stage.dynamodb, "query", failing)
    assert run("resend", *IDS).exit_code == 2
    assert not queued(stage)
    assert all("completedAt" in stage.ledger(id_) for id_ in IDS)


def test_the_output_of_a_resend_names_each_message_that_it_could_not_queue(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        fault = failing_for(stage.dynamodb.update_item, "b", OUT_OF_REACH)
        broken.setattr(stage.dynamodb, "update_item", fault)
        broken.setattr("mailroom.aws.queues.send", lambda *_: {"0"})
        result = run("resend", *IDS)
    assert result.exit_code == 1
    assert "a (mail): it is reopened, but SQS did not accept it" in result.stderr
    assert "b (mail): it may be reopened, but is not queued" in result.stderr
    assert "c (mail)" not in result.stderr
    assert "3 messages of dev: 1 resent, 2 unqueued." in result.stdout
