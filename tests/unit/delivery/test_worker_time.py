"""A worker's time: its deadline, its pace, and the waits of records."""

import pytest

from mailroom.ledger.ledger import Ledger
from tests.support.unit.post import Make
from tests.support.unit.shared import Aws, FakeClock, claimed, item


@pytest.mark.parametrize(("gap", "least"), [(0, 15_000), (20, 20_000)])
def test_a_message_is_submitted_only_if_time_remains_for_its_submit_and_for_the_gap_after_it(
    make_post: Make, aws: Aws, gap: float, least: int
) -> None:
    worker = make_post(pace_seconds=gap)
    assert worker.handle(item(), remaining=lambda: least) == {"r-0": 0}
    assert (worker.submitted, aws.item()) == ([], {})
    assert worker.handle(item(), remaining=lambda: least + 1) == {}
    assert worker.submitted == ["m-1"]


def test_a_message_is_not_submitted_if_the_gap_before_it_would_use_up_the_remaining_time(
    make_post: Make,
) -> None:
    worker = make_post(pace_seconds=5)
    assert worker.handle(item(id="a"), item(id="b"), remaining=lambda: 20_000) == {"r-1": 0}
    assert worker.handle(item(id="b"), item(id="c"), remaining=lambda: 20_001) == {}
    assert worker.submitted == ["a", "b", "c"]


def test_a_message_whose_preparation_takes_too_long_is_not_submitted_and_its_claim_is_released(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    deadline = clock() + 30
    worker = make_post(prepare=lambda _message: clock.advance(25))
    assert worker.handle(item(), remaining=lambda: int((deadline - clock()) * 1000)) == {"r-0": 0}
    assert worker.submitted == []
    assert "startedAt" not in aws.item()


def test_a_worker_waits_for_the_gap_after_each_submit_including_the_last(
    make_post: Make, clock: FakeClock
) -> None:
    make_post(pace_seconds=0.25).handle(*(item(id=f"m-{at}") for at in range(4)))
    assert clock.slept == [0.25] * 4


def test_messages_that_are_not_submitted_do_not_wait_for_the_gap_between_submits(
    make_post: Make, clock: FakeClock, ledger: Ledger
) -> None:
    ledger.complete(claimed(ledger), "ses", "p-0")
    make_post(pace_seconds=0.25).handle(item(), item(id="x", to="wrong"), "no")
    assert clock.slept == []
