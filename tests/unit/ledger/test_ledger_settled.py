"""`settle`: an operator's outcome for a message whose outcome cannot be found out. It is written only if the
message is as the operator saw it."""

from collections.abc import Callable
from typing import Literal

import pytest

from mailroom.ledger.claims import Completed
from mailroom.ledger.ledger import Ledger
from tests.support.unit.shared import KEY, LEASE, NOW_MS, Aws, FakeClock, Item, claimed, mail

Ending = Literal["sent", "failed"]
HOUR = 3600.0
both = pytest.mark.parametrize("status", ["sent", "failed"])


def followed(ledger: Ledger, clock: FakeClock) -> None:
    """Make a message that its provider accepted two hours ago, and that workers follow since."""
    claim = claimed(ledger)
    ledger.checkpoint(claim, "signalwire", "p-1")
    ledger.hand_back(claim)
    clock.advance(2 * HOUR)


def crashed(ledger: Ledger, clock: FakeClock) -> None:
    """Make a message whose worker died two hours ago, before or after its submit."""
    claimed(ledger)
    clock.advance(2 * HOUR)


def settled(ledger: Ledger, snapshot: Item, status: Ending, clock: FakeClock) -> bool:
    return ledger.settle(KEY, snapshot, status, clock() - HOUR)


@both
@pytest.mark.parametrize("reached", [followed, crashed])
def test_an_operator_can_set_the_final_status_of_an_abandoned_message_to_sent_or_failed(
    ledger: Ledger, aws: Aws, clock: FakeClock, reached: Callable[[Ledger, FakeClock], None], status: Ending
) -> None:
    reached(ledger, clock)
    snapshot = aws.item()
    assert settled(ledger, snapshot, status, clock)
    stored = aws.item()
    assert (stored["status"], stored["completedAt"], stored["attempts"]) == (status, NOW_MS + 7_200_000, 1)
    assert stored["history"] == [{"at": NOW_MS + 7_200_000, "status": status, "code": "settled"}]
    assert (
        ("failed_as" in stored) == (stored.get("error", {}).get("code") == "settled") == (status == "failed")
    )
    assert stored.get("provider_id") == snapshot.get("provider_id")
    assert ledger.claim(mail()) == Completed()


@both
def test_an_operator_can_set_the_final_status_of_a_message_that_waits_for_its_next_attempt(
    ledger: Ledger, aws: Aws, clock: FakeClock, status: Ending
) -> None:
    ledger.retry_later(claimed(ledger), "busy", "Fax status: busy")
    assert settled(ledger, aws.item(), status, clock)
    stored = aws.item()
    assert (stored["status"], stored["attempts"]) == (status, 2)
    assert stored.get("error", {}).get("code") == (None if status == "sent" else "settled")
    assert ledger.claim(mail(attempt=2)) == Completed()


@both
@pytest.mark.parametrize("age", [LEASE, HOUR - 0.001])
def test_an_operator_cannot_set_the_final_status_of_a_message_whose_try_began_recently(
    ledger: Ledger, aws: Aws, clock: FakeClock, age: float, status: Ending
) -> None:
    claim = claimed(ledger)
    clock.advance(age)
    assert not settled(ledger, aws.item(), status, clock)
    clock.advance(-age)
    ledger.checkpoint(claim, "signalwire", "p-1")
    ledger.hand_back(claim)
    clock.advance(age)
    before = aws.item()
    assert not settled(ledger, before, status, clock)
    assert aws.item() == before


def test_an_operator_cannot_set_the_final_status_of_a_message_without_a_ledger_item(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    assert not settled(ledger, {"status": "sending"}, "failed", clock)
    assert aws.item() == {}
