"""States of campaign runs, as functions that send their messages ask for them."""

from typing import Any

from mailroom.campaigns.runs import Runs
from mailroom.ledger.items import PAUSED, RUN_UNKNOWN
from mailroom.ledger.run_states import FRESH_SECONDS, STOPPED, RunStates
from mailroom.message.message import CampaignStart
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.run_messages import lose_run, read_run, start_of, start_run
from tests.support.unit.shared import RUNS, Aws, FakeClock


def test_each_start_of_a_campaign_has_the_state_of_its_own_run(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    stopped, paused, running = (start_of(start_run(runs, name)) for name in ("r", "s", "t"))
    missing = CampaignStart("weekly", "u", running.start)
    runs.stop("weekly", "r")
    runs.pause("weekly", "s", "a wrong link")
    halted = RunStates(aws.dynamodb, RUNS, clock).halted([stopped, None, paused, running, missing])
    assert halted == {stopped: STOPPED, paused: PAUSED, missing: RUN_UNKNOWN}


def test_an_earlier_start_of_a_run_is_stopped_by_a_later_one_even_during_a_pause(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    first = start_of(start_run(runs))
    second = start_of(start_run(runs, start="again"))
    states = RunStates(aws.dynamodb, RUNS, clock)
    assert states.halted([first, second]) == {first: STOPPED}
    runs.pause("weekly", "r", "a wrong link")
    clock.advance(FRESH_SECONDS)
    assert states.halted([first, second]) == {first: STOPPED, second: PAUSED}


def test_messages_of_an_earlier_run_of_the_same_name_are_stopped(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    earlier = start_of(start_run(runs))
    lose_run(aws)
    clock.advance(60)
    start_run(runs)
    assert RunStates(aws.dynamodb, RUNS, clock).halted([earlier]) == {earlier: STOPPED}


def test_the_state_of_a_run_is_cached_for_seconds_unless_the_run_is_paused(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    start = start_of(start_run(runs))
    client: Any = Meddler(aws.dynamodb)
    states = RunStates(client, RUNS, clock)
    assert [states.halted([start]), states.halted([start])] == [{}, {}]
    assert client.names() == ["batch_get_item"]
    runs.pause("weekly", "r", "a wrong link")
    assert states.halted([start]) == {}
    clock.advance(FRESH_SECONDS)
    assert [states.halted([start]), states.halted([start])] == [{start: PAUSED}] * 2
    assert client.names() == ["batch_get_item"] * 3
    runs.resume("weekly", "r", "since noon by ada: it is right")
    assert states.halted([start]) == {}


def test_a_stop_of_a_run_takes_effect_within_seconds_and_the_run_is_not_read_again(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    start = start_of(start_run(runs))
    client: Any = Meddler(aws.dynamodb)
    states = RunStates(client, RUNS, clock)
    assert states.halted([start]) == {}
    runs.stop("weekly", "r")
    clock.advance(FRESH_SECONDS)
    assert [states.halted([start]), states.halted([start])] == [{start: STOPPED}] * 2
    assert client.names() == ["batch_get_item"] * 2


def test_a_later_start_of_a_run_is_not_halted_by_the_cached_state_of_its_earlier_start(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    first = start_of(start_run(runs))
    client: Any = Meddler(aws.dynamodb)
    states = RunStates(client, RUNS, clock)
    assert states.halted([first]) == {}
    second = start_of(start_run(runs, start="again"))
    assert states.halted([second]) == {}
    assert client.names() == ["batch_get_item"]


def test_a_run_that_cannot_be_read_is_unknown_and_is_read_again_at_once(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    start = start_of(start_run(runs))
    client: Any = Meddler(aws.dynamodb, batch_get_item=failing(client_error("InternalServerError")))
    states = RunStates(client, RUNS, clock)
    assert [states.halted([start]), states.halted([start])] == [{start: RUN_UNKNOWN}, {}]


def test_the_cached_state_of_a_run_is_valid_for_seconds_while_the_table_cannot_be_read(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    known, unread = start_of(start_run(runs)), start_of(start_run(runs, "s"))
    outages = failing(*[client_error("InternalServerError")] * 2)
    calls = iter([lambda real, **arguments: real(**arguments), outages, outages])
    client: Any = Meddler(aws.dynamodb, batch_get_item=lambda *real, **read: next(calls)(*real, **read))
    states = RunStates(client, RUNS, clock)
    assert states.halted([known]) == {}
    assert states.halted([known, unread]) == {unread: RUN_UNKNOWN}
    clock.advance(FRESH_SECONDS)
    assert states.halted([known, unread]) == {known: RUN_UNKNOWN, unread: RUN_UNKNOWN}


def test_a_run_is_unknown_if_the_table_of_runs_is_missing_or_has_no_name(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    start = start_of(start_run(runs))
    for table in ("not-deployed", ""):
        assert RunStates(aws.dynamodb, table, clock).halted([start]) == {start: RUN_UNKNOWN}


def test_a_run_whose_item_lacks_the_number_of_its_earliest_valid_start_is_unknown(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    start = start_of(start_run(runs))
    del (item := lose_run(aws))["valid_from"]
    aws.dynamodb.put_item(TableName=RUNS, Item=item)
    assert RunStates(aws.dynamodb, RUNS, clock).halted([start]) == {start: RUN_UNKNOWN}


def test_messages_that_producers_have_put_do_not_cause_a_read_of_a_run(aws: Aws, clock: FakeClock) -> None:
    client: Any = Meddler(aws.dynamodb)
    assert RunStates(client, RUNS, clock).halted([None, None]) == {}
    assert client.names() == []


def test_messages_of_a_run_without_an_item_are_stopped_if_an_operator_has_stopped_the_run(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    start = start_of(start_run(runs))
    lose_run(aws)
    clock.advance(60)
    assert runs.stop("weekly", "r", lost=True)
    assert RunStates(aws.dynamodb, RUNS, clock).halted([start]) == {start: STOPPED}
    assert read_run(runs).start == ""
