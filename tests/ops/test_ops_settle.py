"""`messages settle`: an operator records the outcome of a message that no function can end."""

import json
from typing import Any

import pytest

from tests.support.ops.repair import RepairStage, ms_ago, repair_stage, run
from tests.support.pipeline.items import mail_item

STAGE = repair_stage
HOUR, DAY = 3_600, 86_400
FAX: dict[str, Any] = {"status": "sending", "provider": "signalwire", "provider_id": "fx-1"}


def settle(*arguments: str) -> tuple[int, dict[str, Any]]:
    result = run("settle", *arguments, "--yes", "--json")
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize("word", ["sent", "failed"])
def test_a_fax_with_an_unknown_outcome_is_settled_with_the_status_that_the_operator_gives(
    stage: RepairStage, word: str
) -> None:
    stage.know("f", "fax", **FAX, submittedAt=ms_ago(2 * DAY), startedAt=ms_ago(60))
    code, answer = settle("f", "--as", word)
    assert (code, answer["counts"]) == (0, {"recorded": 1})
    assert [each["why"] for each in answer["messages"]] == ["sending: signalwire fx-1"]
    found = stage.ledger("f", "fax")
    assert (found["status"], found["attempts"]) == (word, 1)
    assert found["history"][-1]["code"] == "settled"
    assert settle("f", "--as", word)[0] == 1


def test_a_settlement_shows_the_message_and_its_consequences_and_requires_a_confirmation(
    stage: RepairStage,
) -> None:
    stage.know("f", "fax", **FAX, submittedAt=ms_ago(2 * DAY), to="+16175551234")
    result = run("settle", "f", "--as", "failed", typed="n\n")
    assert result.exit_code == 1
    assert "sending: signalwire fx-1" in " ".join(result.stdout.split())
    assert "Record 1 message of dev as failed? Callbacks are sent, and mailroom" in result.stderr
    assert "completedAt" not in stage.ledger("f", "fax")
    result = run("settle", "f", "--as", "sent", typed="y\n")
    assert (result.exit_code, "never sent again" in result.stderr) == (0, True)
    assert "1 message of dev: 1 recorded." in result.stdout


def test_a_fax_can_be_settled_only_when_its_line_is_certainly_free(stage: RepairStage) -> None:
    stage.know("f", "fax", **FAX, submittedAt=ms_ago(2 * HOUR + 1_400))
    code, answer = settle("f", "--as", "failed")
    assert (code, answer["counts"]) == (1, {"refused": 1})
    assert answer["messages"][0]["why"].startswith(
        "sending: a function may be sending it, or its fax line may be busy, until 20"
    )
    stage.know("f", "fax", **FAX, submittedAt=ms_ago(2 * HOUR + 1_600))
    assert settle("f", "--as", "failed")[0] == 0


def test_a_message_that_a_worker_may_hold_is_refused_until_its_lease_is_over(stage: RepairStage) -> None:
    stage.know("m", status="sending", claim_token="t", startedAt=ms_ago(1_400))
    assert settle("m", "--as", "sent")[0] == 1
    stage.know("m", status="sending", claim_token="t", startedAt=ms_ago(1_600))
    assert settle("m", "--as", "sent")[0] == 0


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"status": "sent", "completedAt": 1}, "sent: it has its outcome"),
        (
            {
                "status": "scheduled",
                "scheduledFor": "2026-01-01T00:00:00.000Z",
                "wait": {"version": "v", "reason": "send_at"},
            },
            "scheduled: it waits until the function release queues it; mailroom messages cancel",
        ),
        (
            {
                "status": "scheduled",
                "scheduledFor": "2026-01-01T00:00:00.000Z",
                "wait": {"version": "v", "reason": "day_used_up"},
                "waits_in": "run_unknown#mail#1",
            },
            "scheduled: it waits until the function release queues it; mailroom docs run-unknown shows",
        ),
    ],
)
def test_a_message_with_an_outcome_or_a_wait_cannot_be_settled(
    stage: RepairStage, item: dict[str, Any], why: str
) -> None:
    stage.know("m", **item)
    before = stage.ledger("m")
    code, answer = settle("m", "--as", "failed")
    assert (code, answer["messages"][0]["why"].startswith(why)) == (1, True)
    assert stage.ledger("m") == before


def test_settle_does_not_change_a_message_that_changes_during_the_confirmation(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.know("m", status="sending", claim_token="t")

    def thinks(*_: object, **__: object) -> bool:
        stage.know("m", status="sending", claim_token="another", startedAt=ms_ago(0))
        return True

    monkeypatch.setattr("typer.confirm", thinks)
    result = run("settle", "m", "--as", "failed")
    assert result.exit_code == 1
    assert "m (mail): it has changed since it was shown; run this again" in result.stderr
    assert "completedAt" not in stage.ledger("m")


def test_settle_refuses_an_unclaimed_message_and_an_id_that_two_channels_have(stage: RepairStage) -> None:
    stage.put(mail_item("m"))
    result = run("settle", "m", "--as", "failed")
    assert (result.exit_code, "it has no record of being sent" in result.stdout) == (1, True)
    for event_type in ("mail", "fax"):
        stage.know("m", event_type, status="sending")
    result = run("settle", "m", "--as", "failed")
    assert (result.exit_code, "choose one with --channel" in result.stderr) == (2, True)
    assert settle("m", "--as", "failed", "--channel", "mail")[0] == 0
