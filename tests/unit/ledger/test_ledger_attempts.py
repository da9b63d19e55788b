"""Attempts: given back, resumed, ended; and who lost the claim."""

import pytest

from mailroom.errors import ClaimLost
from mailroom.ledger.claims import Checkpoint, Completed
from mailroom.ledger.ledger import Ledger
from tests.support.unit.shared import (
    LEASE,
    NOW_MS,
    Aws,
    FakeClock,
    claimed,
    mail,
)
from tests.support.unit.verbs import OWN_VERBS


@pytest.mark.parametrize("verb", OWN_VERBS)
def test_who_lost_the_claim_cannot_write(ledger: Ledger, aws: Aws, clock: FakeClock, verb: str) -> None:
    lost = claimed(ledger)
    clock.advance(LEASE)
    claimed(ledger)
    before = aws.item()
    with pytest.raises(ClaimLost, match="another worker has claimed the message since"):
        OWN_VERBS[verb](ledger, lost)
    assert aws.item() == before


def test_a_claim_lost_after_acceptance_names_the_providers_id(ledger: Ledger, clock: FakeClock) -> None:
    lost = claimed(ledger)
    clock.advance(LEASE)
    claimed(ledger)
    with pytest.raises(ClaimLost, match="accepted as p-7, but another worker"):
        ledger.complete(lost, "ses", "p-7")


@pytest.mark.parametrize("verb", OWN_VERBS)
def test_nothing_is_written_over_an_outcome_save_a_missing_provider_id(
    ledger: Ledger, aws: Aws, verb: str
) -> None:
    claim = claimed(ledger)
    ledger.fail(claim, "rejected", "first")
    before = aws.item()
    OWN_VERBS[verb](ledger, claim)
    after = aws.item()
    assert (after["status"], after["error"], after["attempts"]) == ("failed", before["error"], 1)
    assert after["history"] == before["history"]
    assert ledger.claim(mail()) == Completed()


def test_a_message_handed_back_is_claimed_at_once_and_resumed(ledger: Ledger, aws: Aws) -> None:
    claim = claimed(ledger)
    ledger.checkpoint(claim, "telnyx", "f-1")
    assert (aws.item()["provider"], aws.item()["status"]) == ("telnyx", "sending")
    ledger.hand_back(claim)
    again = claimed(ledger)
    assert (again.unsettled, again.checkpoint) == ((), Checkpoint("f-1", "telnyx", NOW_MS))


def test_without_a_checkpoint_nothing_is_handed_back(ledger: Ledger, aws: Aws) -> None:
    ledger.hand_back(claimed(ledger))
    assert aws.item()["startedAt"] == NOW_MS


def test_a_retry_ends_the_attempt_and_waits_for_the_next(ledger: Ledger, aws: Aws) -> None:
    claim = claimed(ledger)
    ledger.checkpoint(claim, "telnyx", "f-1")
    ledger.retry_later(claim, "busy", "Fax status: busy")
    found = aws.item()
    assert (found["status"], found["attempts"]) == ("retrying", 1)
    assert found["error"] == {"code": "busy", "message": "Fax status: busy"}
    assert found["history"] == [{"at": NOW_MS, "status": "retrying", "code": "busy"}]
    assert "startedAt" not in found
    assert "provider_id" not in found
    assert "completedAt" not in found


def test_the_error_of_an_earlier_attempt_goes_when_a_later_one_is_sent(ledger: Ledger, aws: Aws) -> None:
    ledger.retry_later(claimed(ledger), "busy", "Fax status: busy")
    ledger.complete(claimed(ledger, mail(attempt=2)), "telnyx", "f-2")
    assert "error" not in aws.item()
    assert [line.get("code") for line in aws.item()["history"]] == ["busy", None]
