"""Lambda's rules for streams, as the pump keeps them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from mailroom_local.pump.functions import Invoked
from tests.support.local.stream import (
    DONE,
    MAPPING,
    RAISED,
    REFUSED,
    Run,
    invoked_with_failed,
    raising_on,
    records,
    reporting,
)

EIGHT = range(1, 9)


def test_the_pump_delivers_a_stream_batch_that_succeeds_once_and_whole() -> None:
    run = Run(lambda _: DONE).deliver(records(*EIGHT))
    assert run.invoked == [list(EIGHT)]
    assert run.lost() == []


@pytest.mark.parametrize("poison", [raising_on(5), reporting(5)])
def test_the_pump_gives_up_only_a_poisoned_stream_record_and_delivers_the_records_around_it(
    poison: Callable[[list[int]], Invoked],
) -> None:
    run = Run(poison).deliver(records(*EIGHT))
    assert run.lost() == [5]
    handled = {number for batch in run.invoked if 5 not in batch for number in batch}
    handled |= {number for batch in run.invoked for number in batch if number < 5}
    assert handled | {5} == set(EIGHT)


def test_the_pump_splits_a_stream_batch_until_two_poisoned_records_are_given_up_separately() -> None:
    run = Run(raising_on(2, 7)).deliver(records(*EIGHT))
    assert [[int(each.sequence) for each in given_up.records] for given_up in run.given_up] == [[2], [7]]


def test_a_delivery_resumes_after_a_partial_failure_at_the_lowest_failed_sequence_number() -> None:
    answers = iter([invoked_with_failed(6, 4), DONE])
    run = Run(lambda _: next(answers)).deliver(records(*EIGHT))
    assert run.invoked == [list(EIGHT), [4, 5, 6, 7, 8]]


def test_the_pump_delivers_stream_records_in_their_order_while_others_are_retried() -> None:
    run = Run(reporting(3)).deliver(records(*EIGHT))
    last_seen = {number: place for place, batch in enumerate(run.invoked) for number in batch}
    assert sorted(last_seen, key=lambda number: last_seen[number]) == sorted(last_seen)


def test_the_pump_retries_a_stream_batch_a_limited_number_of_times_not_counting_a_split() -> None:
    run = Run(raising_on(1)).deliver(records(1, 2))
    assert run.invoked == [[1, 2], [1], [1], [1], [2]]
    assert run.given_up[0].invocations == 4


def test_a_throttled_invocation_does_not_count_as_a_retry_of_a_stream_batch() -> None:
    answers = iter([REFUSED] * 10 + [RAISED, RAISED, DONE])
    run = Run(lambda _: next(answers)).deliver(records(1))
    assert len(run.invoked) == 13
    assert run.lost() == []


def test_the_time_between_retries_grows_up_to_a_maximum() -> None:
    run = Run(raising_on(1), replace(MAPPING, max_retries=12)).deliver(records(1))
    assert run.waited == sorted(run.waited)
    assert run.waited[0] < 1 < run.waited[-1] <= 5


@pytest.mark.parametrize(
    "payload", [None, "", [], {}, {"batchItemFailures": []}, {"batchItemFailures": None}]
)
def test_an_empty_response_of_a_function_counts_as_success_of_the_batch(payload: object) -> None:
    assert len(Run(lambda _: Invoked("request", payload)).deliver(records(1, 2)).invoked) == 1


@pytest.mark.parametrize("identifier", ["", None, "99", 1])
def test_an_invalid_or_unknown_identifier_in_a_functions_response_fails_the_whole_stream_batch(
    identifier: object,
) -> None:
    failed = Invoked("request", {"batchItemFailures": [{"itemIdentifier": identifier}]})
    answers = iter([failed, DONE, DONE])
    run = Run(lambda _: next(answers)).deliver(records(1, 2))
    assert run.invoked == [[1, 2], [1], [2]]
