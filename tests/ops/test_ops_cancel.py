"""`mailroom cancel`: a message taken back, and `status` says so at once."""

import json

import typer
from typer.testing import CliRunner, Result

from mailroom_ops.messages.cancel import cancel
from tests.support.ops.repair import RepairStage, repair_stage
from tests.support.pipeline.items import mail

STAGE = repair_stage
app = typer.Typer()
app.command()(cancel)
LATER = "2099-01-01T00:00:00Z"


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words, env={"COLUMNS": "200"})


def test_a_waiting_message_is_cancelled_and_its_status_is_printed(stage: RepairStage) -> None:
    stage.put(mail("m", send_at=LATER))
    for _ in range(2):
        result = run("m", "--json")
        assert (result.exit_code, json.loads(result.stdout)["status"]) == (0, "cancelled")
    assert stage.ledger("m")["status"] == "cancelled"
    assert "it was cancelled before it was sent (cancelled)" in run("m").stdout


def test_a_message_that_does_not_wait_is_not_cancelled(stage: RepairStage) -> None:
    stage.failed("m")
    result = run("m")
    assert result.exit_code == 2
    assert "m is not cancelled: the message is failed and does not wait" in " ".join(result.stderr.split())


def test_an_unknown_message_is_refused(stage: RepairStage) -> None:
    result = run("nobody")
    assert result.exit_code == 2
    assert "there is no such message" in result.stderr
