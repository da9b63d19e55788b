"""The end of a fax: by its line, its provider or its last attempt."""

from typing import Any

import pytest

from mailroom.aws.queues import AT_ONCE
from mailroom.channels.fax.contract import Delivered, Undelivered
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Key
from mailroom.message.outcome import Misconfigured, Retry, Sent
from tests.support.unit.fax import BUSY, SENDING, FakeLine, entry, fax_body
from tests.support.unit.fax_post import FaxMake
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import Aws


def test_after_a_busy_line_a_fax_is_recorded_as_retrying_instead_of_failed(
    fax_post: FaxMake, aws: Aws, counted: Counted
) -> None:
    line = FakeLine(SENDING, BUSY)
    assert fax_post(line).handle(fax_body()) is None
    assert (entry(aws)["status"], entry(aws)["attempts"]) == ("retrying", 1)
    assert entry(aws)["error"] == {"code": "busy", "message": "Fax status: busy"}
    assert "provider_id" not in entry(aws)
    assert "completedAt" not in entry(aws)
    assert counted() == {"Submitted": 1, "Retrying": 1}


def test_after_a_busy_line_the_next_attempt_is_submitted_and_a_copy_of_the_old_attempt_is_not(
    fax_post: FaxMake, aws: Aws, counted: Counted
) -> None:
    line = FakeLine(BUSY, Delivered())
    worker = fax_post(line)
    worker.handle(fax_body())
    assert worker.handle(fax_body()) is None
    assert (line.submits, counted()["Duplicates"]) == (1, 1)
    assert worker.handle(fax_body(attempt=2)) is None
    assert (line.submits, entry(aws)["status"], entry(aws)["attempts"]) == (2, "delivered", 2)
    assert (entry(aws)["provider_id"], entry(aws)["provider_ids"]) == ("p-2", ["p-1", "p-2"])
    assert [request.reference for request in line.requests] == ["Zi0x.1", "Zi0x.2"]


@pytest.mark.parametrize(("retry_count", "attempts"), [(0, 4), (2, 2), (3, 1), (4, 1), (90, 1)])
def test_a_faxs_retry_count_of_an_earlier_gateway_reduces_the_remaining_attempts(
    fax_post: FaxMake, aws: Aws, retry_count: int, attempts: int
) -> None:
    worker = fax_post(FakeLine(BUSY), max_attempts=4)
    for attempt in range(1, attempts + 1):
        assert worker.handle(fax_body(attempt=attempt, retry_count=retry_count)) is None
    assert worker.line.submits == attempts
    assert (entry(aws)["status"], entry(aws)["attempts"]) == ("failed", attempts)
    assert entry(aws).get("retry_count", 0) == retry_count
    assert entry(aws)["error"] == {"code": "busy", "message": "Fax status: busy"}


def test_a_permanent_failure_of_a_fax_is_final_without_another_attempt(
    fax_post: FaxMake, aws: Aws, counted: Counted
) -> None:
    state = Undelivered("failed", again=False, detail="receiver_incompatible_destination")
    assert fax_post(FakeLine(state)).handle(fax_body()) is None
    assert (entry(aws)["status"], entry(aws)["attempts"]) == ("failed", 1)
    assert entry(aws)["error"]["message"] == "Fax status: failed (receiver_incompatible_destination)"
    assert counted() == {"Submitted": 1, "Rejected": 1}


@pytest.mark.parametrize(("outcome", "wait"), [(Retry("429", after=30), 30), (Misconfigured("401"), 20)])
def test_a_fax_that_the_provider_did_not_accept_is_retried_as_the_same_attempt(
    fax_post: FaxMake, aws: Aws, outcome: Any, wait: int
) -> None:
    line = FakeLine(submits=[outcome, Sent("p-9")])
    worker = fax_post(line)
    assert worker.handle(fax_body()) == wait
    assert ("startedAt" in entry(aws), "attempts" in entry(aws)) == (False, False)
    assert worker.handle(fax_body(), receives=2) is None
    assert (entry(aws)["status"], entry(aws)["attempts"], entry(aws)["provider_id"]) == (
        "delivered",
        1,
        "p-9",
    )
    assert "find" not in line.calls


NO_PROFILE = Undelivered("no_outbound_profile", again=True, fault="account")
SPENT = Undelivered("outbound_profile_daily_spend_limit_exceeded", again=True, fault="day")


def test_a_fax_becomes_a_dead_letter_instead_of_failed_if_the_providers_account_is_at_fault(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws, log: Log, counted: Counted
) -> None:
    worker = fax_post(FakeLine(NO_PROFILE), max_attempts=1)
    assert worker.handle(fax_body()) == AT_ONCE
    assert worker.handle(fax_body(), receives=2) == AT_ONCE
    assert (worker.line.submits, counted()) == (1, {"Submitted": 1, "Misconfigured": 2})
    assert "completedAt" not in entry(aws)
    assert entry(aws)["trouble"]["code"] == "misconfigured"
    assert "no_outbound_profile" in next(line["reason"] for line in log() if line["level"] == "ERROR")


def test_after_a_redrive_a_fax_that_failed_by_a_fault_of_the_providers_account_gets_another_attempt(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws
) -> None:
    worker = fax_post(FakeLine(NO_PROFILE, NO_PROFILE, Delivered()), max_attempts=1)
    worker.handle(fax_body())
    fax_ledger.dead_lettered(Key("f-1", "fax"))
    assert worker.handle(fax_body()) is None
    assert (entry(aws)["status"], entry(aws)["attempts"]) == ("retrying", 1)
    assert worker.handle(fax_body(attempt=2)) is None
    assert (worker.line.submits, entry(aws)["status"]) == (2, "delivered")


@pytest.mark.parametrize("retry_count", [0, 3])
def test_the_daily_spend_limit_at_the_provider_does_not_use_up_attempts_of_a_fax(
    fax_post: FaxMake, aws: Aws, counted: Counted, retry_count: int
) -> None:
    states = (SPENT, BUSY, SPENT, SPENT, BUSY, BUSY)
    worker = fax_post(FakeLine(*states), max_attempts=retry_count + 3)
    for attempt in range(1, 6):
        assert worker.handle(fax_body(attempt=attempt, retry_count=retry_count)) is None
        assert (entry(aws)["status"], entry(aws)["attempts"]) == ("retrying", attempt)
    assert worker.handle(fax_body(attempt=6, retry_count=retry_count)) is None
    assert (entry(aws)["status"], entry(aws)["attempts"]) == ("failed", 6)
    assert counted() == {"Submitted": 6, "DayUsedUp": 3, "Retrying": 2, "Rejected": 1}


def test_a_fault_of_the_providers_account_does_not_use_up_an_attempt_of_a_fax(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws
) -> None:
    worker = fax_post(FakeLine(NO_PROFILE, NO_PROFILE, BUSY, BUSY), max_attempts=2)
    worker.handle(fax_body())
    fax_ledger.dead_lettered(Key("f-1", "fax"))
    for attempt, status in ((1, "retrying"), (2, "retrying"), (3, "failed")):
        assert worker.handle(fax_body(attempt=attempt)) is None
        assert (entry(aws)["status"], entry(aws)["attempts"]) == (status, attempt)
