"""Outcomes of a submit, and the results of their records."""

import pytest

from mailroom.message.outcome import Misconfigured, Rejected, Retry, Sent
from tests.support.unit.events import lines_about
from tests.support.unit.post import Counted, Log, Make
from tests.support.unit.shared import Aws, item


def test_a_sent_message_is_completed_in_the_ledger_and_leaves_the_queue(
    make_post: Make, aws: Aws, counted: Counted
) -> None:
    assert make_post().handle(item()) == {}
    stored = aws.item()
    assert (stored["status"], stored["provider"], stored["provider_id"]) == ("sent", "fake", "p-1")
    assert "completedAt" in stored
    assert counted() == {"Sent": 1}


def test_a_message_that_the_provider_rejects_fails_with_the_providers_reason(
    make_post: Make, aws: Aws, counted: Counted
) -> None:
    assert make_post(Rejected("MessageRejected: blacklisted")).handle(item()) == {}
    assert aws.item()["status"] == "failed"
    assert aws.item()["error"] == {"code": "rejected", "message": "MessageRejected: blacklisted"}
    assert counted() == {"Rejected": 1}


@pytest.mark.parametrize(("receives", "seconds"), [(1, 4), (2, 8), (5, 64), (20, 600)])
def test_a_throttled_message_is_retried_after_waits_that_grow_with_each_receive(
    make_post: Make, aws: Aws, receives: int, seconds: int
) -> None:
    assert make_post(Retry("slow down")).handle(item(), receives=receives) == {"r-0": seconds}
    assert aws.item()["status"] == "sending"
    assert "startedAt" not in aws.item()


@pytest.mark.parametrize(("least", "wait"), [(450, 450), (600, 600), (900, 600)])
def test_a_retry_waits_at_least_as_long_as_the_provider_requests_up_to_the_cap(
    make_post: Make, least: float, wait: float
) -> None:
    assert make_post(Retry("quota", after=least)).handle(item()) == {"r-0": wait}


def test_a_throttled_message_is_sent_by_its_next_receive_without_a_look_up(make_post: Make, aws: Aws) -> None:
    worker = make_post(Retry("slow down"), Sent("p-2"))
    worker.handle(item())
    assert worker.handle(item(), receives=2) == {}
    assert (worker.submitted, aws.item()["provider_id"]) == (["m-1", "m-1"], "p-2")
    assert worker.adapter.looked_up == []


def test_after_a_configuration_error_a_message_is_retried_soon_and_does_not_fail(
    make_post: Make, aws: Aws, log: Log, counted: Counted
) -> None:
    assert make_post(Misconfigured("AccountSuspendedException")).handle(item()) == {"r-0": 20}
    assert "completedAt" not in aws.item()
    assert "startedAt" not in aws.item()
    (line,) = lines_about(log(), "not sent: the configuration is invalid")
    assert (line["level"], line["reason"]) == ("ERROR", "AccountSuspendedException")
    assert counted() == {"Misconfigured": 1}
