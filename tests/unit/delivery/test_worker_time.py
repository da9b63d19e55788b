"""A worker's time: its deadline, its pace, and the waits of records."""

from mailroom.ledger.ledger import Ledger
from tests.support.unit.post import Make
from tests.support.unit.shared import Aws, FakeClock, claimed, item


def test_no_submit_begins_that_might_not_end_within_the_functions_time(post: Make, aws: Aws) -> None:
    worker = post()
    assert worker.handle(item(), remaining=lambda: 15_000) == {"r-0": 0}
    assert (worker.submitted, aws.item()) == ([], {})
    assert worker.handle(item(), remaining=lambda: 15_001) == {}
    assert worker.submitted == ["m-1"]


def test_the_wait_for_a_turn_counts_against_the_deadline(post: Make) -> None:
    worker = post(pace_seconds=5)
    assert worker.handle(item(id="a"), item(id="b"), remaining=lambda: 20_000) == {"r-1": 0}
    assert worker.handle(item(id="b"), item(id="c"), remaining=lambda: 20_001) == {}
    assert worker.submitted == ["a", "b", "c"]


def test_the_gap_after_a_submit_counts_against_the_deadline(post: Make) -> None:
    worker = post(pace_seconds=20)
    assert worker.handle(item(), remaining=lambda: 20_000) == {"r-0": 0}
    assert worker.submitted == []
    assert worker.handle(item(), remaining=lambda: 20_001) == {}


def test_a_message_whose_preparation_takes_too_long_is_released_unsent(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    deadline = clock() + 30
    worker = post(prepare=lambda _message: clock.advance(25))
    assert worker.handle(item(), remaining=lambda: int((deadline - clock()) * 1000)) == {"r-0": 0}
    assert worker.submitted == []
    assert "startedAt" not in aws.item()


def test_a_batch_is_sent_as_far_as_the_functions_time_allows(post: Make, clock: FakeClock, aws: Aws) -> None:
    deadline = clock() + 35
    worker = post(pace_seconds=4)
    bodies = [item(id=f"m-{at}") for at in range(10)]
    waits = worker.handle(*bodies, remaining=lambda: int((deadline - clock()) * 1000))
    assert worker.submitted == ["m-0", "m-1", "m-2", "m-3", "m-4"]
    assert waits == {f"r-{at}": 0 for at in range(5, 10)}
    # It was claimed with the batch, and its claim was released.
    assert "startedAt" not in aws.item("m-5")


def test_submits_keep_their_pace_and_an_invocation_ends_with_a_gap(post: Make, clock: FakeClock) -> None:
    post(pace_seconds=0.25).handle(*(item(id=f"m-{at}") for at in range(4)))
    assert clock.slept == [0.25] * 4


def test_messages_that_are_not_submitted_do_not_wait_for_a_turn(
    post: Make, clock: FakeClock, ledger: Ledger
) -> None:
    ledger.complete(claimed(ledger), "ses", "p-0")
    post(pace_seconds=0.25).handle(item(), item(id="x", to="wrong"), "no")
    assert clock.slept == []
