"""Results of the claim of a page, and the effect on the page's queue message."""

from typing import Any

import pytest

from mailroom.campaigns.audience import Fault
from mailroom.campaigns.runs import PageClaim, PageOutOfSequence, Passed, Runs, Unsent
from mailroom.ledger.claims import InProgress
from tests.support.unit.shared import RUNS, Aws, FakeClock

RUN = ("weekly", "2026-11-21T14:00Z")
TIME = "2026-11-21T14:00:00Z"
LEASE = 60


@pytest.fixture
def begun_runs(aws: Aws, clock: FakeClock) -> Runs:
    """With a run that was begun."""
    runs = Runs(aws.dynamodb, RUNS, lease=LEASE, clock=clock)
    assert runs.begin(*RUN, "s-1", TIME)
    return runs


def collect(runs: Runs, page: int, cursor: Any) -> None:
    claim = runs.claim(*RUN, "s-1", page)
    assert isinstance(claim, PageClaim)
    runs.advance(claim, cursor, 1, [])


def test_a_worker_claims_the_next_page_of_a_run(begun_runs: Runs) -> None:
    claim = begun_runs.claim(*RUN, "s-1", 1)
    assert isinstance(claim, PageClaim)
    assert (claim.page, claim.run.run) == (1, RUN[1])


def test_the_claim_of_a_page_of_an_earlier_start_returns_superseded(begun_runs: Runs) -> None:
    assert begun_runs.begin(*RUN, "s-2", TIME)
    assert begun_runs.claim(*RUN, "s-1", 1) == Passed("superseded")


def test_the_claim_of_a_page_two_pages_behind_the_due_page_returns_superseded(begun_runs: Runs) -> None:
    collect(begun_runs, 1, "b")
    collect(begun_runs, 2, "c")
    assert begun_runs.claim(*RUN, "s-1", 1) == Passed("superseded")


def test_the_claim_of_a_page_returns_superseded_if_the_next_page_was_claimed(begun_runs: Runs) -> None:
    collect(begun_runs, 1, "b")
    assert isinstance(begun_runs.claim(*RUN, "s-1", 2), PageClaim)
    assert begun_runs.claim(*RUN, "s-1", 1) == Passed("superseded")


def test_the_claim_of_a_repeated_page_returns_the_next_pages_cursor_if_the_next_page_is_unclaimed(
    begun_runs: Runs,
) -> None:
    collect(begun_runs, 1, "b")
    found = begun_runs.claim(*RUN, "s-1", 1)
    assert isinstance(found, Unsent)
    assert found.cursor == "b"


@pytest.mark.parametrize("page", [2, 3])
def test_the_claim_of_a_page_returns_out_of_sequence_if_an_earlier_page_is_due(
    begun_runs: Runs, page: int
) -> None:
    assert begun_runs.claim(*RUN, "s-1", page) == PageOutOfSequence()


def test_the_claim_of_a_page_of_an_unknown_run_returns_out_of_sequence(begun_runs: Runs) -> None:
    assert begun_runs.claim("weekly", "r-9", "s-1", 1) == PageOutOfSequence()


def test_a_page_of_a_collected_run_cannot_be_claimed(begun_runs: Runs) -> None:
    collect(begun_runs, 1, None)
    assert begun_runs.claim(*RUN, "s-1", 1) == Passed("collected")


def test_the_claim_of_a_page_that_another_worker_holds_returns_the_rest_of_its_lease(
    begun_runs: Runs, clock: FakeClock
) -> None:
    assert isinstance(begun_runs.claim(*RUN, "s-1", 1), PageClaim)
    clock.advance(20)
    assert begun_runs.claim(*RUN, "s-1", 1) == InProgress(LEASE - 20)


def test_the_faults_of_a_run_contain_addresses_and_numbers_only_in_masked_form(begun_runs: Runs) -> None:
    claim = begun_runs.claim(*RUN, "s-1", 1)
    assert isinstance(claim, PageClaim)
    said = "'ada.lovelace@example,com' is no address, '+1 617 555 1234' is no number"
    begun_runs.advance(claim, None, 1, [Fault("line 30000 of s3://bucket/people.csv", "to", said)])
    run = begun_runs.read(*RUN)
    assert run is not None
    (fault,) = run.faults
    assert fault.startswith("line 30000 of s3://bucket/people.csv")
    assert "a***@example,com" in fault
    assert "…34" in fault
    assert "lovelace" not in fault
    assert "555" not in fault
