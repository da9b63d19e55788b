"""The claim of one message, and the reasons why a message cannot be claimed."""

import pytest

from mailroom.ledger.claims import Claim, Completed, InProgress, OutOfSequence, Superseded, why_not_claimed
from mailroom.ledger.ledger import Ledger
from tests.support.unit.shared import KEY, NOW_MS, TTL, Aws, Item, claimed, mail


def test_the_first_claim_of_a_message_writes_its_ledger_item_and_has_an_empty_list_of_tries(
    ledger: Ledger, aws: Aws
) -> None:
    claim = claimed(ledger, mail(callback_url="https://shop.example/told"))
    assert (claim.key, claim.unsettled, claim.checkpoint) == (KEY, (), None)
    stored = aws.item()
    assert stored["status"] == "sending"
    assert stored["startedAt"] == NOW_MS
    assert stored["claim_token"] == claim.token
    assert stored["to"] == "vincent@example.com"
    assert stored["callback_url"] == "https://shop.example/told"
    assert stored["updatedAt"] == "2026-11-21T09:00:00.000Z"
    assert stored["ttl"] == NOW_MS // 1000 + TTL


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
def test_the_reason_for_a_refused_claim_follows_from_the_ledger_item(
    item: Item, attempt: int, expected: Claim
) -> None:
    assert why_not_claimed(item, attempt, now_ms=70_000, lease_ms=30_000) == expected
