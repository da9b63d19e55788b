"""How a fax ends: by its line, its provider or its last attempt."""

from typing import Any

import pytest

from mailroom.channels.fax.contract import Delivered, Undelivered
from mailroom.message.outcome import Misconfigured, Rejected, Retry, Sent
from tests.support.unit.fax import BUSY, SENDING, FakeLine, fax_body, found
from tests.support.unit.fax_post import FaxMake
from tests.support.unit.post import Counted
from tests.support.unit.shared import Aws


def test_a_busy_line_ends_the_attempt_and_not_the_fax(fax_post: FaxMake, aws: Aws, counted: Counted) -> None:
    line = FakeLine(SENDING, BUSY)
    assert fax_post(line).handle(fax_body()) is None
    assert (found(aws)["status"], found(aws)["attempts"]) == ("retrying", 1)
    assert found(aws)["error"] == {"code": "busy", "message": "Fax status: busy"}
    assert "provider_id" not in found(aws)
    assert "completedAt" not in found(aws)
    assert counted() == {"Submitted": 1, "Retrying": 1}


def test_the_next_attempt_is_submitted_anew_and_a_copy_of_the_last_one_is_not(
    fax_post: FaxMake, aws: Aws, counted: Counted
) -> None:
    line = FakeLine(BUSY, Delivered())
    worker = fax_post(line)
    worker.handle(fax_body())
    assert worker.handle(fax_body()) is None
    assert (line.submits, counted()["Duplicates"]) == (1, 1)
    assert worker.handle(fax_body(attempt=2)) is None
    assert (line.submits, found(aws)["status"], found(aws)["attempts"]) == (2, "sent", 2)
    assert (found(aws)["provider_id"], found(aws)["provider_ids"]) == ("p-2", ["p-1", "p-2"])
    assert [each.reference for each in line.requests] == ["Zi0x.1", "Zi0x.2"]


def test_a_stale_attempt_of_a_chain_that_went_on_is_dropped(fax_post: FaxMake, aws: Aws) -> None:
    worker = fax_post(FakeLine(BUSY))
    for attempt in (1, 2, 3):
        worker.handle(fax_body(attempt=attempt))
    assert [worker.handle(fax_body(attempt=attempt)) for attempt in (1, 2, 3)] == [None] * 3
    assert (worker.line.submits, found(aws)["attempts"]) == (3, 3)


def test_the_last_attempts_busy_line_is_a_failure(fax_post: FaxMake, aws: Aws) -> None:
    worker = fax_post(FakeLine(BUSY), max_attempts=3)
    for attempt in (1, 2, 3):
        assert worker.handle(fax_body(attempt=attempt)) is None
    assert (found(aws)["status"], found(aws)["attempts"]) == ("failed", 3)
    assert found(aws)["error"] == {"code": "busy", "message": "Fax status: busy"}


def test_attempts_of_another_gateway_count_towards_the_most_that_a_fax_gets(
    fax_post: FaxMake, aws: Aws
) -> None:
    worker = fax_post(FakeLine(BUSY), max_attempts=4)
    for attempt in (1, 2):
        assert worker.handle(fax_body(attempt=attempt, retry_count=2)) is None
    assert worker.line.submits == 2
    assert (found(aws)["status"], found(aws)["attempts"], found(aws)["retry_count"]) == ("failed", 2, 2)


@pytest.mark.parametrize("retry_count", [3, 4, 90])
def test_a_fax_that_another_gateway_was_about_to_give_up_gets_one_attempt(
    fax_post: FaxMake, aws: Aws, retry_count: int
) -> None:
    worker = fax_post(FakeLine(BUSY), max_attempts=4)
    assert worker.handle(fax_body(retry_count=retry_count)) is None
    assert (worker.line.submits, found(aws)["status"]) == (1, "failed")


def test_an_end_that_another_attempt_would_not_change_is_a_failure_at_once(
    fax_post: FaxMake, aws: Aws, counted: Counted
) -> None:
    state = Undelivered("failed", again=False, detail="receiver_incompatible_destination")
    assert fax_post(FakeLine(state)).handle(fax_body()) is None
    assert (found(aws)["status"], found(aws)["attempts"]) == ("failed", 1)
    assert found(aws)["error"]["message"] == "Fax status: failed (receiver_incompatible_destination)"
    assert counted() == {"Submitted": 1, "Rejected": 1}


def test_a_fax_that_the_provider_refuses_is_a_failure(fax_post: FaxMake, aws: Aws) -> None:
    assert fax_post(FakeLine(submits=[Rejected("21211: invalid To")])).handle(fax_body()) is None
    assert found(aws)["error"] == {"code": "rejected", "message": "21211: invalid To"}


@pytest.mark.parametrize(("outcome", "wait"), [(Retry("429", after=30), 30), (Misconfigured("401"), 20)])
def test_a_fax_that_was_proved_not_sent_comes_back_and_is_the_same_attempt(
    fax_post: FaxMake, aws: Aws, outcome: Any, wait: int
) -> None:
    line = FakeLine(submits=[outcome, Sent("p-9")])
    worker = fax_post(line)
    assert worker.handle(fax_body()) == wait
    assert ("startedAt" in found(aws), "attempts" in found(aws)) == (False, False)
    assert worker.handle(fax_body(), receives=2) is None
    assert (found(aws)["status"], found(aws)["attempts"], found(aws)["provider_id"]) == ("sent", 1, "p-9")
    assert "find" not in line.calls
