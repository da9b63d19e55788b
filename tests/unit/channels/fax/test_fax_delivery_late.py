"""Faxes that come too late, expire, or take longer than any fax does."""

import itertools

import pytest

from mailroom.channels.fax.contract import Delivered, FaxState, Undelivered
from mailroom.ledger.ledger import Ledger
from tests.support.unit.events import lines_about
from tests.support.unit.fax import BUSY, FAX_LEASE, SENDING, FakeLine, ends_after, entry, fax, fax_body
from tests.support.unit.fax_post import FaxMake
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import NOW, Aws, FakeClock, claimed


def test_a_fax_is_not_submitted_if_too_few_receives_are_left_to_poll_the_fax_to_the_end(
    fax_post: FaxMake, aws: Aws, log: Log
) -> None:
    worker = fax_post(last_submit_receive=10)
    assert worker.handle(fax_body(), receives=11) == 0
    assert worker.line.calls == []
    assert ("startedAt" in entry(aws), "completedAt" in entry(aws)) == (False, False)
    assert lines_about(log(), "not submitted: received too often")[0]["receives"] == 11
    assert worker.handle(fax_body(), receives=10) is None
    assert entry(aws)["status"] == "delivered"


def test_a_submitted_fax_is_polled_even_if_too_few_receives_are_left_for_a_new_submit(
    fax_post: FaxMake, aws: Aws, clock: FakeClock
) -> None:
    worker = fax_post(FakeLine(script=ends_after(clock, 1000, Delivered())), last_submit_receive=10)
    assert worker.handle(fax_body(), receives=10) == 5
    assert worker.handle(fax_body(), receives=11) is None
    assert (worker.line.submits, entry(aws)["status"]) == (1, "delivered")


def test_a_fax_that_expires_during_transmission_is_polled_to_the_end(
    fax_post: FaxMake, aws: Aws, clock: FakeClock
) -> None:
    worker = fax_post(FakeLine(script=ends_after(clock, 1000, Delivered())))
    body = fax_body(expires_at="2026-11-21T09:01:00Z")
    assert [worker.handle(body, receives=number) for number in (1, 2)] == [5, None]
    assert entry(aws)["status"] == "delivered"


@pytest.mark.parametrize(
    ("final", "status"),
    [
        (Undelivered("canceled", again=True), "retrying"),
        (Undelivered("failed", again=False), "failed"),
        (BUSY, "retrying"),
        (Delivered(), "delivered"),
    ],
)
def test_an_overdue_fax_is_cancelled_and_gets_the_status_that_the_provider_then_reports(
    fax_post: FaxMake, aws: Aws, clock: FakeClock, final: FaxState, status: str
) -> None:
    class Stoppable(FakeLine):
        def cancel(self, provider_id: str) -> None:
            super().cancel(provider_id)
            self._states = itertools.repeat(final)

    worker = fax_post(Stoppable(SENDING), longest_fax_seconds=1800)
    waits = [worker.handle(fax_body(), receives=number) for number in (1, 2, 3)]
    assert waits == [5, 5, None]
    assert worker.line.calls[-3:] == ["fetch p-1", "cancel p-1", "fetch p-1"]
    assert (worker.line.submits, entry(aws)["status"]) == (1, status)
    assert 1800 < clock() - NOW < 1810


@pytest.mark.parametrize("cancels", [None, TimeoutError("slow")])
def test_an_overdue_fax_still_sending_after_the_cancel_locks_its_line_and_keeps_its_provider_id(
    fax_post: FaxMake, aws: Aws, clock: FakeClock, counted: Counted, cancels: Exception | None
) -> None:
    worker = fax_post(FakeLine(SENDING, cancels=cancels), longest_fax_seconds=60)
    assert worker.handle(fax_body()) == 20  # soon: the line has been locked long enough
    assert worker.line.calls[-2:] == ["cancel p-1", "fetch p-1"]
    assert counted()["Overdue"] == 1
    assert (entry(aws)["provider_id"], "completedAt" in entry(aws)) == ("p-1", False)
    assert entry(aws)["trouble"]["code"] == "overdue"
    assert worker.handle(fax_body(), receives=12) == 20  # redriven or late: polled, never submitted
    assert (worker.line.submits, entry(aws)["status"]) == (1, "sending")


def test_a_fax_found_by_a_look_up_is_not_overdue_because_of_the_start_of_an_earlier_attempt(
    fax_post: FaxMake, fax_ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    fax_post(FakeLine(BUSY)).handle(fax_body())
    clock.advance(8000)
    claimed(fax_ledger, fax(attempt=2))
    clock.advance(FAX_LEASE)
    line = FakeLine(SENDING, Delivered(), finds=["p-7"])
    assert fax_post(line).handle(fax_body(attempt=2), receives=2) is None
    assert line.calls == ["find", "fetch p-7", "fetch p-7"]
    assert entry(aws)["status"] == "delivered"
