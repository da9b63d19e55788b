"""Next attempt of a message for a later start of its campaign's run."""

from collections.abc import Callable

import pytest

from mailroom.errors import ClaimLost
from mailroom.ledger.claims import Superseded
from mailroom.ledger.erasure import Erasure
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.message import CAMPAIGN_START
from mailroom.message.message import CampaignStart
from tests.support.told import ses_event
from tests.support.unit.shared import (
    KEY,
    LEDGER,
    NOW,
    NOW_MS,
    TTL,
    Aws,
    FakeClock,
    claimed,
    crash,
    item,
    mail,
)
from tests.support.unit.waiting import hold, waits_of

START = CampaignStart("weekly", "r", 7)
Before = Callable[[Ledger], object]


def nothing(_ledger: Ledger) -> None:
    """Leave the ledger empty."""


def hold_message(ledger: Ledger) -> None:
    hold(ledger)


def is_released(ledger: Ledger) -> None:
    ledger.release(claimed(ledger), "retry", "slow down")


def is_cancelled(ledger: Ledger) -> None:
    ledger.cancel(KEY, code="stopped")


def is_cancelled_by_its_worker(ledger: Ledger) -> None:
    ledger.cancel_claimed(claimed(ledger), "stopped", "its run was stopped", {})


def is_restarted(ledger: Ledger) -> None:
    assert ledger.restart(KEY, {}, CampaignStart("weekly", "r", 5)) == 2


@pytest.mark.parametrize(
    ("before", "attempt", "code"),
    [
        (nothing, 2, "superseded"),
        (hold_message, 2, "superseded"),
        (is_released, 2, "superseded"),
        (is_cancelled, 2, "restarted"),
        (is_cancelled_by_its_worker, 2, "restarted"),
        (is_restarted, 3, "superseded"),
    ],
)
def test_a_restart_begins_the_next_attempt_of_an_unsent_message_and_supersedes_its_earlier_copies(
    ledger: Ledger, aws: Aws, before: Before, attempt: int, code: str
) -> None:
    before(ledger)
    assert ledger.restart(KEY, aws.item(), START) == attempt
    stored = aws.item()
    assert (stored["status"], stored["attempts"]) == ("retrying", attempt - 1)
    assert stored[CAMPAIGN_START] == {"campaign": "weekly", "run": "r", "start": 7}
    assert stored["history"][-1] == {"at": NOW_MS, "status": "retrying", "code": code}
    assert not {"completedAt", "startedAt", "unsettled_tries", "error", "trouble"} & stored.keys()
    assert (stored["putAt"], stored["ttl"]) == (NOW_MS, NOW + TTL)
    assert ledger.claim(mail(attempt=attempt - 1)) == Superseded()
    ledger.complete(claimed(ledger, mail(attempt=attempt)), "ses", "p-1")
    assert aws.item()["status"] == "sent"


def test_each_restart_of_a_message_raises_its_generation_by_one(ledger: Ledger, aws: Aws) -> None:
    for number in (1, 2, 3):
        ledger.restart(KEY, aws.item(), START)
        assert aws.item()["generation"] == number


def test_cancelling_a_copy_of_the_attempt_before_a_restart_does_not_cancel_the_restarted_message(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.restart(KEY, {}, START)
    assert ledger.cancel_together([(mail(), None)], "stopped", "its run was stopped") == []
    assert aws.item()["status"] == "retrying"


def test_a_waiting_message_that_is_restarted_stays_in_the_list_of_waits_but_no_longer_waits(
    ledger: Ledger, aws: Aws
) -> None:
    hold(ledger, due=NOW)
    ledger.restart(KEY, aws.item(), START)
    rows = [row for shard in range(8) for row in waits_of(ledger).due(shard, NOW)]
    assert [(row.key, row.waits) for row in rows] == [(KEY, False)]


def test_a_worker_that_released_its_claim_before_a_restart_cannot_change_the_message(
    ledger: Ledger, aws: Aws
) -> None:
    claim = claimed(ledger)
    ledger.release(claim, "retry", "slow down")
    ledger.restart(KEY, aws.item(), START)
    with pytest.raises(ClaimLost):
        ledger.release(claim, "retry", "slow down")


def is_sent(ledger: Ledger) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")


def has_failed(ledger: Ledger) -> None:
    ledger.fail(claimed(ledger), "rejected", "no")


def is_claimed(ledger: Ledger) -> None:
    claimed(ledger)


@pytest.mark.parametrize("before", [is_claimed, is_sent, has_failed])
def test_a_message_that_is_claimed_sent_or_failed_is_not_restarted(
    ledger: Ledger, aws: Aws, before: Before
) -> None:
    before(ledger)
    snapshot = aws.item()
    assert ledger.restart(KEY, snapshot, START) is None
    assert aws.item() == snapshot


def test_a_message_that_may_have_been_sent_is_not_restarted(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    crash(ledger, clock)
    ledger.release(claimed(ledger), "in_doubt", "its outcome is unknown")
    snapshot = aws.item()
    assert ledger.restart(KEY, snapshot, START) is None
    assert aws.item() == snapshot


def is_refused(ledger: Ledger) -> None:
    ledger.refuse(item(), "invalid", "no")


def is_reopened(ledger: Ledger) -> None:
    is_cancelled(ledger)
    assert ledger.reopen(KEY, {"status": "cancelled", "attempts": 1}) == 2


@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [
        (nothing, hold_message),
        (nothing, is_claimed),
        (hold_message, is_claimed),
        (hold_message, is_cancelled),
        (hold_message, is_refused),
        (is_released, is_claimed),
        (is_released, is_sent),
        (is_restarted, lambda ledger: claimed(ledger, mail(attempt=2))),
        (
            is_cancelled,
            lambda ledger: ledger.restart(
                KEY, {"status": "cancelled", "completedAt": 1, "attempts": 1}, START
            ),
        ),
        (hold_message, is_reopened),
        (is_restarted, lambda ledger: ledger.cancel(KEY)),
    ],
)
def test_a_message_that_has_changed_since_it_was_read_is_not_restarted(
    ledger: Ledger, aws: Aws, before: Before, meanwhile: Before
) -> None:
    before(ledger)
    snapshot = aws.item()
    meanwhile(ledger)
    changed = aws.item()
    assert changed != snapshot
    assert ledger.restart(KEY, snapshot, START) is None
    assert aws.item() == changed


def test_a_message_with_an_event_of_its_provider_since_it_was_read_is_not_restarted(
    ledger: Ledger, aws: Aws
) -> None:
    is_released(ledger)
    snapshot = aws.item()
    observe(ledger, [ses_event(KEY, "delivered")])
    assert ledger.restart(KEY, snapshot, START) is None


def test_an_erased_message_is_not_restarted(ledger: Ledger, aws: Aws, clock: FakeClock) -> None:
    is_cancelled(ledger)
    snapshot = aws.item()
    assert Erasure(aws.dynamodb, LEDGER, TTL, clock).empty(KEY, snapshot)
    assert aws.item()["status"] == snapshot["status"]
    assert ledger.restart(KEY, snapshot, START) is None
    assert ledger.restart(KEY, aws.item(), START) is None
    assert "erased_at" in aws.item()
