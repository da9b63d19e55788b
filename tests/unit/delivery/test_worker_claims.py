"""Claims of a batch: together in one call, or each message alone when its turn comes."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from mailroom.ledger.ledger import Ledger
from mailroom.message.outcome import Sent
from tests.support.unit.fakes import FakeAdapter, Meddler, failing
from tests.support.unit.post import Log, Post
from tests.support.unit.shared import LEASE, Aws, FakeClock, claimed, item

TOGETHER, ALONE = "batch_execute_statement", "update_item"
MAILS = [item(id=f"m-{at}") for at in range(3)]


def post_with_meddler(aws: Aws, clock: FakeClock, **changes: Any) -> tuple[Post, Meddler]:
    answers = {name: changes.pop(name) for name in (TOGETHER, ALONE) if name in changes}
    client = Meddler(aws.dynamodb, **answers)
    return Post(aws, clock, FakeAdapter(Sent("p-1")), client, **changes), client


def until(clock: FakeClock, deadline: float) -> Callable[[], int]:
    """Return the rest of a function's time in milliseconds, as a function."""
    return lambda: int((deadline - clock()) * 1000)


def test_first_attempts_of_a_batch_are_claimed_in_one_call(aws: Aws, clock: FakeClock) -> None:
    worker, client = post_with_meddler(aws, clock)
    assert worker.handle(*MAILS) == {}
    assert client.names() == [TOGETHER, ALONE, ALONE, ALONE]
    assert worker.submitted == ["m-0", "m-1", "m-2"]
    assert [aws.item(body["id"])["status"] for body in MAILS] == ["sent"] * 3


def test_the_only_valid_message_of_a_batch_is_claimed_by_a_single_update(aws: Aws, clock: FakeClock) -> None:
    worker, client = post_with_meddler(aws, clock)
    worker.handle(MAILS[0], "not json", item(id="m-9", to="wrong\n"))
    assert worker.submitted == ["m-0"]
    assert TOGETHER not in client.names()


def test_if_on_unknown_is_hold_each_message_is_claimed_just_before_it_is_submitted(
    aws: Aws, clock: FakeClock
) -> None:
    worker, client = post_with_meddler(aws, clock, on_unknown="hold")
    worker.handle(*MAILS)
    assert client.names() == [ALONE] * 6


@pytest.mark.parametrize(
    ("change", "receives"),
    [({}, 2), ({"attempt": 2}, 1), ({"send_at": "2026-11-21T08:59:00Z"}, 1)],
    ids=["received before", "a later attempt", "waited for its time"],
)
def test_messages_that_may_already_have_a_ledger_item_are_claimed_one_by_one(
    aws: Aws, clock: FakeClock, change: dict[str, object], receives: int
) -> None:
    worker, client = post_with_meddler(aws, clock)
    worker.handle(*({**body, **change} for body in MAILS), receives=receives)
    assert TOGETHER not in client.names()


def test_a_message_that_is_twice_in_a_batch_is_claimed_separately_from_other_messages_and_sent_once(
    aws: Aws, clock: FakeClock
) -> None:
    worker, client = post_with_meddler(aws, clock)
    twin = {**MAILS[0], "subject": "another content"}
    assert worker.handle(*MAILS, twin) == {}
    assert worker.submitted == ["m-0", "m-1", "m-2"]
    assert len(client.calls[0][1]["Statements"]) == 2  # the twins claim for themselves


def test_a_message_that_another_worker_has_claimed_is_retried_and_the_rest_of_the_batch_is_sent(
    aws: Aws, clock: FakeClock, ledger: Ledger
) -> None:
    claimed(ledger)
    worker, _ = post_with_meddler(aws, clock)
    assert worker.handle(*MAILS) == {"r-1": int(LEASE) + 1}
    assert worker.submitted == ["m-0", "m-2"]


@pytest.mark.parametrize("done", [True, False], ids=["and has claimed", "and has not"])
def test_each_message_of_a_batch_is_sent_once_if_the_call_that_claims_the_batch_fails(
    aws: Aws, clock: FakeClock, log: Log, done: bool
) -> None:
    def timed_out(real: Any, **request: Any) -> None:
        if done:
            real(**request)
        raise ReadTimeoutError(endpoint_url="https://dynamodb.example")

    worker, _ = post_with_meddler(aws, clock, batch_execute_statement=timed_out)
    assert worker.handle(*MAILS) == {}
    assert worker.submitted == ["m-0", "m-1", "m-2"]
    assert [line["message"] for line in log()] == ["the batch was not claimed in one call"]


@pytest.mark.parametrize("code", ["AccessDenied", "ThrottlingError"])
def test_the_reason_why_a_batch_could_not_be_claimed_in_one_call_is_logged(
    aws: Aws, clock: FakeClock, log: Log, code: str
) -> None:
    refused = {"Responses": [{"Error": {"Code": code, "Message": "no"}} for _ in MAILS]}
    worker, _ = post_with_meddler(aws, clock, batch_execute_statement=lambda _real, **_asked: refused)
    assert worker.handle(*MAILS) == {}
    assert [(line["message"], line["reasons"]) for line in log()] == [("not all claimed in one call", [code])]


def test_slow_credentials_are_loaded_once_for_all_messages_of_a_batch(aws: Aws, clock: FakeClock) -> None:
    class SlowAccount(FakeAdapter):
        read = 0

        def open(self) -> FakeAdapter:
            clock.advance(7)
            self.read += 1
            return super().open()

    deadline = clock() + 60
    adapter = SlowAccount(Sent("p-1"))
    worker = Post(aws, clock, adapter)
    worker.handle(*(item(id=f"m-{at}") for at in range(10)), remaining=until(clock, deadline))
    assert clock() < deadline
    assert adapter.read == 1
    assert len(worker.submitted) == 10


def test_a_batch_whose_preparations_and_ledger_calls_are_slow_ends_before_the_functions_deadline(
    aws: Aws, clock: FakeClock
) -> None:
    def slow(real: Any, **request: Any) -> Any:
        clock.advance(3)
        return real(**request)

    def prepared(_message: Any) -> None:
        clock.advance(9)

    deadline = clock() + 60
    client = Meddler(aws.dynamodb, update_item=slow, batch_execute_statement=slow)
    worker = Post(aws, clock, FakeAdapter(Sent("p-1"), prepare=prepared), client)
    worker.handle(*(item(id=f"m-{at}") for at in range(10)), remaining=until(clock, deadline))
    assert worker.submitted
    assert clock() < deadline


def test_a_claim_that_cannot_be_released_is_logged_and_its_message_is_retried(
    aws: Aws, clock: FakeClock, log: Log
) -> None:
    def slow(real: Any, **request: Any) -> Any:
        clock.advance(21)
        return real(**request)

    worker, client = post_with_meddler(
        aws, clock, batch_execute_statement=slow, update_item=failing(OSError("no"))
    )
    assert worker.handle(*MAILS, remaining=until(clock, clock() + 30)) == {"r-0": 0, "r-1": 0, "r-2": 0}
    assert [line["message"] for line in log()] == ["a claim was not released; it ends with its lease"]
    assert worker.submitted == []
    assert client.names() == [TOGETHER, ALONE, ALONE, ALONE]


def test_claims_of_a_batch_are_released_even_if_the_response_to_the_claiming_call_was_lost(
    aws: Aws, clock: FakeClock
) -> None:
    def lost(real: Any, **request: Any) -> None:
        real(**request)
        clock.advance(21)
        raise ReadTimeoutError(endpoint_url="https://dynamodb.example")

    worker, _ = post_with_meddler(aws, clock, batch_execute_statement=lost)
    assert worker.handle(*MAILS, remaining=until(clock, clock() + 30)) == {"r-0": 0, "r-1": 0, "r-2": 0}
    assert not any("startedAt" in aws.item(body["id"]) for body in MAILS)


def test_a_worker_releases_the_claims_of_messages_that_it_lacks_the_time_to_submit(
    aws: Aws, clock: FakeClock
) -> None:
    worker, _ = post_with_meddler(aws, clock, pace_seconds=10)
    waits = worker.handle(*MAILS, remaining=until(clock, clock() + 20))
    assert waits == {"r-1": 0, "r-2": 0}
    assert worker.submitted == ["m-0"]
    assert ["startedAt" in aws.item(body["id"]) for body in MAILS] == [True, False, False]
    assert worker.handle(*MAILS[1:], receives=2) == {}
    assert worker.submitted == ["m-0", "m-1", "m-2"]
