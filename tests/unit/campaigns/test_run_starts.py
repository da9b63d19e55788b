"""Numbers of the starts and stops of a campaign's run."""

from typing import Any

import pytest

from mailroom.campaigns.audience import Fault
from mailroom.campaigns.runs import KEPT_SECONDS, PageClaim, Runs
from tests.support.unit.fakes import Meddler, asked_twice
from tests.support.unit.run_messages import AT, lose_run, read_run, start_run
from tests.support.unit.shared import NOW, NOW_MS, RUNS, Aws, FakeClock

RUN = ("weekly", "r")


def test_the_number_of_a_runs_start_is_the_time_of_the_start(runs: Runs, clock: FakeClock) -> None:
    assert start_run(runs).valid_from == NOW_MS
    clock.advance(60)
    assert start_run(runs, start="again").valid_from == NOW_MS + 60_000


def test_each_start_and_stop_raises_the_start_number_of_a_run_even_if_the_clock_is_behind(
    runs: Runs, clock: FakeClock
) -> None:
    numbers = [start_run(runs).valid_from]
    clock.advance(-3600)
    numbers.append(start_run(runs, start="again").valid_from)
    assert runs.stop(*RUN)
    numbers.append(read_run(runs).valid_from)
    numbers.append(start_run(runs, start="last").valid_from)
    assert numbers == [NOW_MS, NOW_MS + 1, NOW_MS + 2, NOW_MS + 3]


def test_a_start_of_a_run_that_was_recorded_already_does_not_raise_the_start_number(
    runs: Runs, clock: FakeClock
) -> None:
    for behind in (0, 60, -3600):
        runs.begin(*RUN, "start", AT)
        clock.advance(behind)
        assert not runs.begin(*RUN, "start", AT)
        assert read_run(runs).valid_from == NOW_MS


def test_the_counts_of_a_runs_previous_start_are_added_once_to_those_of_its_earlier_starts(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    twice: Any = Meddler(aws.dynamodb, update_item=asked_twice)
    for number, people in enumerate((40, 7, 0, 5)):
        name = f"start-{number}"
        Runs(twice, RUNS, clock=clock).begin(*RUN, name, AT)
        assert not runs.begin(*RUN, name, AT)
        if people:
            claim = runs.claim(*RUN, name, 1)
            assert isinstance(claim, PageClaim)
            runs.advance(claim, None, people, [Fault("line 3", "email", "is missing")])
            runs.count(*RUN, {"opted_out": 2, "left_out": 1})
    run = read_run(runs)
    assert (run.recipients, run.refused, run.opted_out, run.left_out) == (5, 1, 2, 1)
    earlier = (run.earlier_recipients, run.earlier_refused, run.earlier_opted_out, run.earlier_left_out)
    assert earlier == (47, 2, 4, 2)


def test_the_start_number_of_a_run_is_raised_once_if_the_response_to_a_start_was_lost(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    client: Any = Meddler(aws.dynamodb, update_item=asked_twice)
    Runs(client, RUNS, clock=clock).begin(*RUN, "start", AT)
    assert read_run(runs).valid_from == NOW_MS


def test_the_start_number_of_a_run_is_raised_once_if_the_response_to_a_stop_was_lost(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    start_run(runs)
    client: Any = Meddler(aws.dynamodb, update_item=asked_twice)
    assert Runs(client, RUNS, clock=clock).stop(*RUN)
    assert read_run(runs).valid_from == NOW_MS + 1


def test_a_second_stop_of_a_run_does_not_raise_the_start_number(runs: Runs, clock: FakeClock) -> None:
    start_run(runs)
    runs.stop(*RUN)
    stopped = read_run(runs)
    for seconds in (0, 60, -3600):
        clock.advance(seconds)
        assert not runs.stop(*RUN)
    assert read_run(runs) == stopped


def test_a_stop_of_a_stopped_run_that_is_paused_ends_the_pause_and_raises_the_start_number(
    runs: Runs, clock: FakeClock
) -> None:
    start_run(runs)
    runs.stop(*RUN)
    clock.advance(60)
    # A restore pauses the runs that it has read, in whatever state they are.
    runs.client.update_item(
        TableName=RUNS,
        Key={"campaign": {"S": "weekly"}, "run": {"S": "r"}},
        UpdateExpression="SET paused = :why",
        ExpressionAttributeValues={":why": {"S": "restored from a backup"}},
    )
    assert runs.stop(*RUN)
    run = read_run(runs)
    assert (run.state, run.paused, run.valid_from) == ("stopped", "", NOW_MS + 60_000)
    assert not runs.stop(*RUN)


def test_the_pages_of_a_stopped_start_are_not_claimed_after_a_later_start(runs: Runs) -> None:
    start_run(runs)
    runs.stop(*RUN)
    start_run(runs, start="again")
    assert isinstance(runs.claim(*RUN, "again", 1), PageClaim)
    assert not isinstance(runs.claim(*RUN, "start", 1), PageClaim)


# A lost run


def test_the_stop_of_an_unknown_run_writes_no_item_if_the_run_is_not_declared_lost(runs: Runs) -> None:
    assert not runs.stop(*RUN)
    assert runs.read(*RUN) is None


def test_the_stop_of_a_lost_run_records_a_stopped_run_with_a_number_above_those_of_its_starts(
    runs: Runs, aws: Aws, clock: FakeClock
) -> None:
    start = start_run(runs)
    lose_run(aws)
    clock.advance(60)
    assert runs.stop(*RUN, lost=True)
    run = read_run(runs)
    assert (run.state, run.valid_from) == ("stopped", NOW_MS + 60_000)
    assert run.valid_from > start.valid_from


def test_a_lost_run_that_was_stopped_has_all_its_counts_at_zero(runs: Runs) -> None:
    runs.stop(*RUN, lost=True)
    run = read_run(runs)
    assert (run.pages, run.recipients, run.refused, run.composed, run.existed, run.conflicts) == (0,) * 6
    assert (run.opted_out, run.left_out, run.failed, run.expired) == (0,) * 4
    assert (run.earlier_recipients, run.earlier_refused, run.earlier_opted_out, run.earlier_left_out) == (
        (0,) * 4
    )


@pytest.mark.parametrize("name", ["", "r" * 2_000])
def test_a_run_with_an_empty_or_too_long_name_is_read_as_unknown(runs: Runs, name: str) -> None:
    assert runs.read("weekly", name) is None


def test_a_known_run_is_not_stopped_as_a_lost_run(runs: Runs) -> None:
    run = start_run(runs)
    assert not runs.stop(*RUN, lost=True)
    assert read_run(runs) == run


def test_a_lost_run_that_was_stopped_cannot_be_started_and_its_pages_are_not_claimed(runs: Runs) -> None:
    runs.stop(*RUN, lost=True)
    stopped = read_run(runs)
    assert not runs.begin(*RUN, "again", AT)
    assert not any(isinstance(runs.claim(*RUN, start, 1), PageClaim) for start in ("again", ""))
    assert read_run(runs) == stopped


# The life of a run


def test_a_run_expires_two_years_after_its_last_write(runs: Runs, aws: Aws, clock: FakeClock) -> None:
    start_run(runs)
    clock.advance(60)
    runs.pause(*RUN, "a wrong link")
    (item,) = aws.dynamodb.scan(TableName=RUNS)["Items"]
    assert float(item["ttl"]["N"]) == NOW + 60 + KEPT_SECONDS
