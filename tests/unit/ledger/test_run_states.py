"""Runs of campaigns that are stopped or paused, as functions that send their messages ask for them."""

from typing import Any

import pytest

from mailroom.campaigns.runs import Run, Runs
from mailroom.ledger.run_states import FRESH_SECONDS, STOPPED, RunStates
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import RUNS, Aws, FakeClock

AT = "2026-11-18T13:00:00Z"


def begun(runs: Runs, name: str = "r") -> Run:
    assert runs.begin("weekly", name, "start", AT)
    run = runs.read("weekly", name)
    assert run is not None
    return run


def test_the_messages_of_a_stopped_run_are_found_by_their_ids(runs: Runs, aws: Aws, clock: FakeClock) -> None:
    first, second = begun(runs), begun(runs, "s")
    runs.stop("weekly", "r", "an operator")
    ids = [first.id_of("ada"), second.id_of("ada"), "weekly#r#ada", "order-17"]
    assert RunStates(aws.dynamodb, RUNS, clock).halted(ids) == {first.id_of("ada"): STOPPED}


def test_messages_of_an_earlier_run_are_not_stopped_with_a_later_run_of_the_same_name(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    old = begun(runs).id_of("ada")
    aws.dynamodb.delete_item(TableName=RUNS, Key={"campaign": {"S": "weekly"}, "run": {"S": "r"}})
    clock.advance(60)
    begun(runs)
    runs.stop("weekly", "r", "an operator")
    assert RunStates(aws.dynamodb, RUNS, clock).halted([old]) == {}


def test_the_state_of_a_running_run_is_cached_for_seconds_and_the_state_of_a_stopped_run_is_not(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    id_ = begun(runs).id_of("ada")
    client: Any = Meddler(aws.dynamodb)
    states = RunStates(client, RUNS, clock)
    assert [states.halted([id_]), states.halted([id_])] == [{}, {}]
    assert client.names() == ["batch_get_item"]
    runs.stop("weekly", "r", "an operator")
    assert states.halted([id_]) == {}
    clock.advance(FRESH_SECONDS)
    assert [states.halted([id_]), states.halted([id_])] == [{id_: STOPPED}] * 2
    assert client.names() == ["batch_get_item"] * 3
    runs.begin("weekly", "r", "again", AT)
    assert states.halted([id_]) == {}


@pytest.mark.parametrize("table", ["", RUNS])
def test_run_states_are_not_read_for_messages_without_a_campaign_or_in_stages_without_campaigns(
    runs: Runs, aws: Aws, clock: FakeClock, table: str
) -> None:
    ids = ["order-17", "a#b#c"] if table else [begun(runs).id_of("ada")]
    client: Any = Meddler(aws.dynamodb)
    assert RunStates(client, table, clock).halted(ids) == {}
    assert client.names() == []


def test_messages_are_not_stopped_if_the_table_of_runs_is_not_deployed_yet(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    assert RunStates(aws.dynamodb, "not-deployed", clock).halted([begun(runs).id_of("ada")]) == {}
