"""`mailroom restore`: missing items come back, newer ones stay, and all others are unchanged."""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from msgspec import structs
from typer.testing import CliRunner, Result

from mailroom.campaigns.runs import Runs
from mailroom.ledger.items import MARK, PAUSED
from mailroom.ledger.run_states import STOPPED, RunStates
from mailroom.message.message import CampaignStart
from mailroom_ops import cli
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.run_app import run_app
from tests.support.ops.shared import RUNS, Session, make_table

LEDGER, RESTORED = "mailroom-dev-ledger", "mailroom-dev-ledger-restored"
TIME = "2026-11-21T14:00:00Z"
OLD, NEW = "2026-11-20T09:00:00.000Z", "2026-11-21T09:00:00.000Z"


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with in_memory_dynamodb():
        session = Session()
        client = session.client("dynamodb")
        for table in (LEDGER, RESTORED):
            make_table(client, table, "id", "event_type")
        monkeypatch.setattr("boto3.Session", lambda: session)
        yield client


def put_row(dynamodb: Any, table: str, id_: str, at: str, status: str) -> None:
    item = {"id": id_, "event_type": "mail", "updatedAt": at, "status": status}
    dynamodb.put_item(TableName=table, Item={name: {"S": value} for name, value in item.items()})


def statuses(dynamodb: Any) -> dict[str, str]:
    items = dynamodb.scan(TableName=LEDGER)["Items"]
    return {each["id"]["S"]: each["status"]["S"] for each in items}


restore_ledger = partial(run_app, cli.app, "restore", "ledger")


def test_a_restore_replaces_missing_and_older_ledger_items_and_keeps_newer_ones(dynamodb: Any) -> None:
    for number in range(40):
        put_row(dynamodb, RESTORED, f"lost-{number}", OLD, "sent")
    put_row(dynamodb, RESTORED, "older", NEW, "sent")
    put_row(dynamodb, LEDGER, "older", OLD, "sending")
    put_row(dynamodb, RESTORED, "newer", OLD, "sending")
    put_row(dynamodb, LEDGER, "newer", NEW, "delivered")
    put_row(dynamodb, LEDGER, "since", NEW, "sent")
    answer = json.loads(restore_ledger("--from", RESTORED, "--yes", "--json").stdout)
    assert (answer["read"], answer["copied"], answer["kept"]) == (42, 41, 1)
    found = statuses(dynamodb)
    assert (found["older"], found["newer"], found["since"], len(found)) == ("sent", "delivered", "sent", 43)
    again = json.loads(restore_ledger("--from", RESTORED, "--yes", "--json").stdout)
    assert (again["copied"], again["kept"]) == (0, 42)


def test_a_restored_message_keeps_its_wait_only_if_the_wait_has_a_time_in_the_future(dynamodb: Any) -> None:
    """A wait for a run has a number of its own as its position instead of a time."""
    for id_, waits_in, waits_at in (
        ("past", "due#1", 1_600_000_000),
        ("ahead", "due#1", 10**10),
        ("of a paused run", "paused#mail#1", 10**15),
        ("of an unknown run", "run_unknown#mail#1", 10**15),
    ):
        put_row(dynamodb, RESTORED, id_, OLD, "scheduled")
        dynamodb.update_item(
            TableName=RESTORED,
            Key={"id": {"S": id_}, "event_type": {"S": "mail"}},
            UpdateExpression="SET #wait = :wait, waits_in = :in, waits_at = :at",
            ExpressionAttributeNames={"#wait": "wait"},
            ExpressionAttributeValues={
                ":wait": {"M": {}},
                ":in": {"S": waits_in},
                ":at": {"N": f"{waits_at}"},
            },
        )
    assert restore_ledger("--from", RESTORED, "--yes").exit_code == 0
    items = {each["id"]["S"]: each for each in dynamodb.scan(TableName=LEDGER)["Items"]}
    assert {id_ for id_, each in items.items() if each.keys() & MARK} == {"ahead"}
    assert {*statuses(dynamodb).values()} == {"scheduled"}


def backup(dynamodb: Any) -> Runs:
    """The table that the recovery has created, without runs; the table of runs has the run summer."""
    for table in (RUNS, "runs-restored"):
        make_table(dynamodb, table, "campaign", "run")
    assert Runs(dynamodb, RUNS).begin("weekly", "summer", "s-1", TIME)
    return Runs(dynamodb, "runs-restored", clock=lambda: 1_790_000_000.0)


def restored(*options: str) -> Result:
    words = ["restore", "campaign-runs", "--from", "runs-restored", "--yes", *options]
    return CliRunner().invoke(cli.app, words, env={"COLUMNS": "200"})


def test_a_restore_pauses_the_runs_that_it_copies_and_leaves_other_runs_as_they_are(dynamodb: Any) -> None:
    runs, present = backup(dynamodb), Runs(dynamodb, RUNS)
    for name in ("spring", "stopped", "paused"):
        assert runs.begin("weekly", name, "s-1", TIME)
    assert runs.stop("weekly", "stopped")
    assert runs.pause("weekly", "paused", "since then by ada: a wrong link")
    assert runs.begin("weekly", "summer", "s-0", TIME)
    before = present.read("weekly", "summer")
    result = restored()
    assert "Copied from runs-restored into the campaign-runs of dev: 3 of 4 items" in result.stdout
    for command in (
        "campaign resume NAME --run RUN --stage dev --why",
        "campaign stop NAME --run RUN --stage dev --why",
    ):
        assert f"mailroom {command}" in result.stdout
    words = r"since 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ: restored from a backup"
    for name in ("spring", "stopped", "paused"):
        copied, original = present.read("weekly", name), runs.read("weekly", name)
        assert copied is not None
        reason = ", in which it was paused since then by ada: a wrong link" if name == "paused" else ""
        assert re.fullmatch(words + reason, copied.paused)
        assert structs.replace(copied, paused=original.paused if original else "") == original
    assert present.read("weekly", "summer") == before


def test_a_second_restore_does_not_pause_a_run_again_that_an_operator_has_resumed(dynamodb: Any) -> None:
    runs, present = backup(dynamodb), Runs(dynamodb, RUNS)
    assert runs.begin("weekly", "spring", "s-1", TIME)
    assert json.loads(restored("--json").stdout)["copied"] == 1
    assert present.resume("weekly", "spring", "since noon by ada: it is right")
    result = restored()
    assert "0 of 1 item;" in result.stdout
    assert "paused" not in result.stdout
    run = present.read("weekly", "spring")
    assert (run and run.paused) == ""


@pytest.mark.parametrize("stopped", [False, True])
def test_messages_of_a_restored_run_wait_until_an_operator_stops_the_run(
    dynamodb: Any, *, stopped: bool
) -> None:
    """Even if the run was stopped: it may have been started again after the backup, as here."""
    runs, present = backup(dynamodb), Runs(dynamodb, RUNS)
    assert runs.begin("weekly", "spring", "s-1", TIME)
    if stopped:
        assert runs.stop("weekly", "spring")
    start = CampaignStart("weekly", "spring", int(1_790_000_060e3))

    def halted() -> str:
        return RunStates(dynamodb, RUNS, lambda: 1_790_000_060.0).halted([start]).get(start, "")

    restored()
    assert halted() == PAUSED
    assert present.stop("weekly", "spring")
    assert halted() == STOPPED
    assert not present.stop("weekly", "spring")


@pytest.mark.parametrize(
    ("source", "said"),
    [(LEDGER, "is the stage's own table"), ("mailroom-dev-nothing", "There is no")],
)
def test_restore_refuses_an_invalid_source(dynamodb: Any, source: str, said: str) -> None:
    put_row(dynamodb, LEDGER, "a", NEW, "sent")
    result = restore_ledger("--from", source, "--yes")
    assert (result.exit_code, said in result.stderr) == (2, True)
    assert statuses(dynamodb) == {"a": "sent"}


def test_restore_refuses_a_source_table_with_other_keys(dynamodb: Any) -> None:
    make_table(dynamodb, "other", "name")
    result = restore_ledger("--from", "other", "--yes")
    assert (result.exit_code, "is not a copy of" in result.stderr) == (2, True)
