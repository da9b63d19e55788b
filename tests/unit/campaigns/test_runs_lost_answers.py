"""The table of runs after DynamoDB's response was lost, and the SDK has made the same write again."""

from typing import Any

import pytest

from mailroom.campaigns.runs import PageClaim, Runs
from mailroom.errors import ClaimLost
from tests.support.unit.fakes import Meddler, asked_twice
from tests.support.unit.shared import RUNS, Aws, FakeClock

RUN = ("weekly", "2026-11-21T14:00Z")


@pytest.fixture
def begun_runs(aws: Aws, clock: FakeClock) -> Runs:
    """With a run that was begun."""
    runs = Runs(aws.dynamodb, RUNS, lease=60, clock=clock)
    assert runs.begin(*RUN, "s-1", "2026-11-21T14:00:00Z")
    return runs


@pytest.fixture
def twice(aws: Aws, clock: FakeClock) -> Runs:
    """The same table, by an SDK that repeats each write."""
    client: Any = Meddler(aws.dynamodb, update_item=asked_twice)
    return Runs(client, RUNS, lease=60, clock=clock)


def test_a_stop_whose_response_was_lost_succeeds_when_the_sdk_repeats_the_write(
    begun_runs: Runs, twice: Runs
) -> None:
    assert twice.stop(*RUN)
    found = begun_runs.read(*RUN)
    assert found is not None
    assert found.state == "stopped"


def test_a_second_stop_of_a_run_returns_false_even_if_the_sdk_repeats_the_write(
    begun_runs: Runs, twice: Runs
) -> None:
    assert begun_runs.stop(*RUN)
    assert not begun_runs.stop(*RUN)
    assert not twice.stop(*RUN)


def test_counts_of_a_run_are_added_once_if_the_response_to_the_write_was_lost(
    begun_runs: Runs, twice: Runs
) -> None:
    for _ in range(3):
        twice.count(*RUN, {"composed": 5, "existed": 1})
    begun_runs.count(*RUN, {"composed": 2})
    found = begun_runs.read(*RUN)
    assert found is not None
    assert (found.composed, found.existed) == (17, 3)


def test_a_page_of_a_run_is_recorded_once_if_the_response_to_the_write_was_lost(
    begun_runs: Runs, twice: Runs
) -> None:
    claim = begun_runs.claim(*RUN, "s-1", 1)
    assert isinstance(claim, PageClaim)
    twice.advance(claim, "b", 7, [])
    found = begun_runs.read(*RUN)
    assert found is not None
    assert (found.next_page, found.pages, found.recipients) == (2, 1, 7)


def test_a_page_is_not_recorded_if_its_run_was_started_again_meanwhile(begun_runs: Runs) -> None:
    claim = begun_runs.claim(*RUN, "s-1", 1)
    assert isinstance(claim, PageClaim)
    assert begun_runs.begin(*RUN, "s-2", "2026-11-21T14:00:00Z")
    before = begun_runs.read(*RUN)
    with pytest.raises(ClaimLost):
        begun_runs.advance(claim, "b", 7, [])
    assert begun_runs.read(*RUN) == before


def test_a_stop_or_a_count_of_an_unknown_run_does_not_write_an_item(begun_runs: Runs, twice: Runs) -> None:
    assert not twice.stop("weekly", "r-9")
    twice.count("weekly", "r-9", {"composed": 5})
    assert begun_runs.read("weekly", "r-9") is None
