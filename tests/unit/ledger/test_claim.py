"""The claim: one conditional write that tells a free message from one that is done, held or overtaken."""

import pytest

from mailroom.ledger.claims import (
    Claim,
    Claimed,
    Completed,
    InProgress,
    OutOfSequence,
    Superseded,
    why_not_claimed,
)
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from tests.support.told import told
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import KEY, LEASE, LEDGER, NOW_MS, TTL, Aws, FakeClock, Item, claimed, mail


def test_a_first_claim_takes_the_message_and_knows_of_no_earlier_try(ledger: Ledger, aws: Aws) -> None:
    claim = claimed(ledger, mail(callback_url="https://shop.example/told"))
    assert (claim.key, claim.unsettled, claim.checkpoint) == (KEY, (), None)
    found = aws.item()
    assert found["status"] == "sending"
    assert found["startedAt"] == NOW_MS
    assert found["claim_token"] == claim.token
    assert found["to"] == "vincent@example.com"
    assert found["callback_url"] == "https://shop.example/told"
    assert found["updatedAt"] == "2026-11-21T09:00:00.000Z"
    assert found["ttl"] == NOW_MS // 1000 + TTL


@pytest.mark.parametrize("since_claim", [0.0, 0.001, 45.5, LEASE - 0.001])
def test_a_message_under_a_lease_is_in_progress_for_the_rest_of_it(
    ledger: Ledger, clock: FakeClock, since_claim: float
) -> None:
    claimed(ledger)
    clock.advance(since_claim)
    found = ledger.claim(mail())
    assert isinstance(found, InProgress)
    assert found.seconds == pytest.approx(LEASE - since_claim, abs=0.0015)


def test_after_its_lease_a_message_is_claimed_anew_and_the_crash_is_known(
    ledger: Ledger, clock: FakeClock
) -> None:
    first = claimed(ledger)
    clock.advance(LEASE)
    second = claimed(ledger)
    assert second.unsettled[0].began == NOW_MS
    assert second.token != first.token


def test_a_completed_message_is_told_apart_even_after_its_lease(ledger: Ledger, clock: FakeClock) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    clock.advance(10 * LEASE)
    assert ledger.claim(mail()) == Completed()


@pytest.mark.parametrize("ended", [1, 2])
def test_after_an_attempt_has_ended_only_the_next_one_is_claimed(ledger: Ledger, ended: int) -> None:
    for attempt in range(1, ended + 1):
        ledger.retry_later(claimed(ledger, mail(attempt=attempt)), "busy", "the line is busy")
    assert ledger.claim(mail(attempt=ended)) == Superseded()
    assert ledger.claim(mail(attempt=ended + 2)) == OutOfSequence()
    assert isinstance(ledger.claim(mail(attempt=ended + 1)), Claimed)


def test_a_later_attempt_needs_an_item_to_follow(ledger: Ledger, aws: Aws) -> None:
    assert ledger.claim(mail(attempt=2)) == OutOfSequence()
    assert aws.item() == {}


def test_a_claim_whose_answer_was_lost_is_completed_where_an_event_came_between(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claimed(ledger)
    clock.advance(LEASE + 5)

    def event_between(real: object, **arguments: object) -> object:
        assert callable(real)
        real(**arguments)
        observe(ledger, [told(KEY, "delivered")])
        return real(**arguments)

    client = Meddler(aws.dynamodb, update_item=event_between)
    late = Ledger(client, LEDGER, lease=LEASE, ttl=TTL, clock=clock)  # type: ignore[arg-type]
    assert late.claim(mail()) == Completed()


@pytest.mark.parametrize(
    ("item", "attempt", "expected"),
    [
        ({"completedAt": 1, "attempts": 3, "startedAt": 1}, 1, Completed()),
        ({"attempts": 1}, 1, Superseded()),
        ({"attempts": 4, "startedAt": 1}, 2, Superseded()),
        ({"startedAt": 60_000}, 1, InProgress(20.0)),
        ({"startedAt": 60_000, "attempts": 1}, 2, InProgress(20.0)),
        ({"startedAt": 10_000}, 1, InProgress(0.0)),
        ({}, 2, OutOfSequence()),
        ({"attempts": 1}, 3, OutOfSequence()),
    ],
)
def test_a_refusal_is_explained_by_the_item_alone(item: Item, attempt: int, expected: Claim) -> None:
    assert why_not_claimed(item, attempt, now_ms=70_000, lease_ms=30_000) == expected
