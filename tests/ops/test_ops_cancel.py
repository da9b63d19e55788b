"""`mailroom messages cancel`: a message taken back, and `status` says so at once."""

import json
from functools import partial

import typer

from mailroom_ops.messages.cancel import cancel
from tests.support.ops.repair import RepairStage, repair_stage
from tests.support.ops.run_app import run_app
from tests.support.pipeline.items import mail_item

STAGE = repair_stage
app = typer.Typer()
app.command()(cancel)
LATER = "2099-01-01T00:00:00Z"


run = partial(run_app, app)


def test_a_waiting_message_is_cancelled_and_its_status_is_printed(stage: RepairStage) -> None:
    stage.put(mail_item("m", send_at=LATER))
    for _ in range(2):
        result = run("m", "--json")
        assert (result.exit_code, json.loads(result.stdout)["counts"]) == (0, {"cancelled": 1})
    assert stage.ledger("m")["status"] == "cancelled"
    assert "1 message of dev: 1 cancelled." in run("m").stdout


def test_messages_cancel_exits_with_1_if_the_message_does_not_wait(stage: RepairStage) -> None:
    stage.failed("m")
    result = run("m")
    assert result.exit_code == 1
    assert "the message is failed and does not wait" in " ".join(result.stdout.split())


def test_messages_cancel_exits_with_1_for_an_unknown_message(stage: RepairStage) -> None:
    result = run("nobody")
    assert result.exit_code == 1
    assert "there is no such message" in " ".join(result.stdout.split())
