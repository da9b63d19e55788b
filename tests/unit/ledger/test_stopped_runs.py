"""Runs of campaigns that are stopped, as functions that send their messages ask for them."""

from typing import Any

import pytest

from mailroom.campaigns.runs import Run, Runs
from mailroom.ledger.stopped_runs import FRESH_SECONDS, StoppedRuns
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import RUNS, Aws, FakeClock

AT = "2026-11-18T13:00:00Z"


@pytest.fixture
def runs(aws: Aws, clock: FakeClock) -> Runs:
    return Runs(aws.dynamodb, RUNS, clock=clock)


def begun(runs: Runs, name: str = "r") -> Run:
    assert runs.begin("weekly", name, "start", AT)
    run = runs.read("weekly", name)
    assert run is not None
    return run


def test_the_messages_of_a_stopped_run_are_found_by_their_ids(runs: Runs, aws: Aws, clock: FakeClock) -> None:
    first, second = begun(runs), begun(runs, "s")
    runs.stop("weekly", "r", "an operator")
    ids = [first.id_of("ada"), second.id_of("ada"), "weekly#r#ada", "order-17"]
    assert StoppedRuns(aws.dynamodb, RUNS, clock).among(ids) == {first.id_of("ada")}


def test_a_run_of_the_same_name_that_began_at_another_time_stops_no_other_messages(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    old = begun(runs).id_of("ada")
    aws.dynamodb.delete_item(TableName=RUNS, Key={"campaign": {"S": "weekly"}, "run": {"S": "r"}})
    clock.advance(60)
    begun(runs)
    runs.stop("weekly", "r", "an operator")
    assert StoppedRuns(aws.dynamodb, RUNS, clock).among([old]) == set()


def test_only_that_a_run_is_not_stopped_is_remembered_and_only_for_seconds(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    id_ = begun(runs).id_of("ada")
    client: Any = Meddler(aws.dynamodb)
    stopped = StoppedRuns(client, RUNS, clock)
    assert [stopped.among([id_]), stopped.among([id_])] == [set(), set()]
    assert client.names() == ["batch_get_item"]
    runs.stop("weekly", "r", "an operator")
    assert stopped.among([id_]) == set()
    clock.advance(FRESH_SECONDS)
    assert [stopped.among([id_]), stopped.among([id_])] == [{id_}, {id_}]
    assert client.names() == ["batch_get_item"] * 3
    runs.begin("weekly", "r", "again", AT)
    assert stopped.among([id_]) == set()


@pytest.mark.parametrize("table", ["", RUNS])
def test_messages_of_no_campaign_and_a_stage_without_campaigns_cost_no_read(
    runs: Runs, aws: Aws, clock: FakeClock, table: str
) -> None:
    ids = ["order-17", "a#b#c"] if table else [begun(runs).id_of("ada")]
    client: Any = Meddler(aws.dynamodb)
    assert StoppedRuns(client, table, clock).among(ids) == set()
    assert client.names() == []


def test_a_table_that_is_not_deployed_yet_stops_nothing(runs: Runs, aws: Aws, clock: FakeClock) -> None:
    assert StoppedRuns(aws.dynamodb, "not-deployed", clock).among([begun(runs).id_of("ada")]) == set()
