"""`correct`: which messages get a correction, what it contains, and what is refused."""

import json
from functools import partial
from typing import Any

import pytest
import typer

from mailroom.aws.dynamo_values import plain
from mailroom.ledger.items import ERASED_AT
from mailroom_ops.repair.correct import correct
from tests.support.ops.repair import MAILBOX, RepairStage, repair_stage
from tests.support.ops.run_app import run_app
from tests.support.pipeline.items import mail_item

STAGE = repair_stage
app = typer.Typer()
app.command()(correct)


run = partial(run_app, app)


def corrected(*words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and the results by id, of a run that prints JSON."""
    result = run(*words, "--json", "--yes")
    return result.exit_code, {each["id"]: each for each in json.loads(result.stdout)["messages"]}


def item_of(stage: RepairStage, id_: str) -> dict[str, Any]:
    key: Any = {"id": {"S": id_}, "event_type": {"S": "mail"}}
    item = plain(stage.dynamodb.get_item(TableName=MAILBOX, Key=key).get("Item", {}))
    item.pop("ttl", None)
    return item


def put_sent_mail(stage: RepairStage, id_: str, **attributes: Any) -> None:
    stage.know(id_, status="sent", completedAt=1, attempts=1)
    stage.put(mail_item(id_, **attributes))


def test_a_correction_is_a_copy_with_the_changes_and_without_times_and_conditions(stage: RepairStage) -> None:
    past = {"send_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z", "ttl": 1}
    put_sent_mail(stage, "a", **past, unless=[{"id": "x", "event_type": "sms", "status": "delivered"}])
    code, results = corrected("new-link", "a", "--set", "first_name=Countess", "--set", "lane=bulk")
    assert (code, results["a"]["result"]) == (0, "corrected")
    assert item_of(stage, "a~new-link") == mail_item("a~new-link", first_name="Countess", lane="bulk")
    assert stage.ledger("a")["status"] == "sent"


def test_a_repeated_correction_changes_nothing_and_another_one_of_the_same_name_is_refused(
    stage: RepairStage,
) -> None:
    put_sent_mail(stage, "a")
    for _ in range(2):
        assert corrected("fix", "a", "--set", "first_name=Eve")[1]["a"]["result"] == "corrected"
    looked = corrected("fix", "a", "--set", "first_name=Eve", "--dry-run")[1]["a"]
    assert (looked["result"], looked["why"]) == ("corrected", "a~fix was put before")
    code, results = corrected("fix", "a", "--set", "first_name=Joan")
    assert (code, results["a"]["result"]) == (1, "refused")
    assert results["a"]["why"] == "a~fix exists with other content; use another name"
    assert item_of(stage, "a~fix")["first_name"] == "Eve"


@pytest.mark.parametrize(
    ("ledger", "why"),
    [
        ({"status": "scheduled"}, "scheduled: it has no outcome yet"),
        ({"status": "retrying", "startedAt": 1}, "retrying: it has no outcome yet"),
        (
            {"status": "cancelled", "completedAt": 1, "error": {"code": "unless"}},
            "cancelled: it was not meant to be sent; put another message instead",
        ),
        ({"status": "sent", "completedAt": 1, ERASED_AT: 1}, "its recipient was erased"),
    ],
)
def test_a_message_that_is_under_way_cancelled_or_erased_is_not_corrected(
    stage: RepairStage, ledger: dict[str, Any], why: str
) -> None:
    stage.put(mail_item("a"))
    stage.know("a", **ledger)
    assert corrected("fix", "a")[1]["a"]["why"] == why
    assert item_of(stage, "a~fix") == {}


def test_a_correction_is_refused_if_the_item_is_gone_or_if_the_corrected_message_would_fail(
    stage: RepairStage,
) -> None:
    stage.failed("gone")
    put_sent_mail(stage, "a")
    code, results = corrected("fix", "gone", "a", "unknown", "--set", "lane=nowhere")
    assert code == 1
    assert results["gone"]["why"] == "its item is no longer in the mailbox"
    assert results["a"]["why"].startswith("its correction would fail: lane: ")
    assert results["unknown"]["why"] == "there is no such message in the ledger"


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("New Link", "a"), "cannot be the name of a correction"),
        (("x" * 41, "a"), "cannot be the name of a correction"),
        (("fix", "a", "--set", "to=eve@example.com"), "A correction cannot change to"),
        (("fix", "a", "--set", "id=b"), "A correction cannot change id"),
        (("fix", "a", "--set", "subject"), "The change 'subject' is not a pair"),
        (("fix",), "Name the messages"),
        (("fix", "--ids", "nowhere.txt"), "--ids nowhere.txt cannot be read"),
    ],
)
def test_an_invalid_correction_is_refused_before_anything_is_put(
    stage: RepairStage, words: tuple[str, ...], refusal: str
) -> None:
    put_sent_mail(stage, "a")
    result = run(*words, "--yes")
    assert result.exit_code == 2
    assert refusal in " ".join(result.stderr.split())
    assert item_of(stage, "a~fix") == {}


def test_the_correction_of_over_a_hundred_ids_from_a_file_requires_their_number_typed(
    stage: RepairStage, tmp_path: Any
) -> None:
    ids = [f"m-{number}" for number in range(101)]
    for id_ in ids:
        put_sent_mail(stage, id_)
    (tmp_path / "ids.txt").write_text("\n".join([*ids, "", ids[0]]))
    options = ("fix", "--ids", str(tmp_path / "ids.txt"), "--set", "first_name=New")
    refused = run(*options, typed="y\n")
    assert (refused.exit_code, "That is not 101. Nothing was changed." in refused.stderr) == (2, True)
    assert item_of(stage, "m-0~fix") == {}
    assert "101 messages of dev: 101 corrected." in run(*options, typed="101\n").stdout
    assert item_of(stage, "m-100~fix")["first_name"] == "New"
