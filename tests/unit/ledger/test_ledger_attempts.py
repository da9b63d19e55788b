"""Ends of an attempt, and workers that lost their claim."""

import pytest

from mailroom.errors import ClaimLost
from mailroom.ledger.ledger import Ledger
from tests.support.unit.shared import LEASE, NOW_MS, Aws, FakeClock, claimed, mail
from tests.support.unit.verbs import OWN_VERBS


@pytest.mark.parametrize("verb", OWN_VERBS)
def test_a_worker_that_lost_its_claim_cannot_write_to_the_ledger(
    ledger: Ledger, aws: Aws, clock: FakeClock, verb: str
) -> None:
    lost = claimed(ledger)
    clock.advance(LEASE)
    claimed(ledger)
    before = aws.item()
    with pytest.raises(ClaimLost, match="another worker has claimed the message since"):
        OWN_VERBS[verb](ledger, lost)
    assert aws.item() == before


def test_a_claim_without_a_checkpoint_of_its_submit_cannot_be_handed_back(ledger: Ledger, aws: Aws) -> None:
    ledger.hand_back(claimed(ledger))
    assert aws.item()["startedAt"] == NOW_MS


def test_a_message_whose_failed_attempt_will_be_retried_has_the_status_retrying_and_is_unclaimed(
    ledger: Ledger, aws: Aws
) -> None:
    claim = claimed(ledger)
    ledger.checkpoint(claim, "telnyx", "f-1")
    ledger.retry_later(claim, "busy", "Fax status: busy")
    stored = aws.item()
    assert (stored["status"], stored["attempts"]) == ("retrying", 1)
    assert stored["error"] == {"code": "busy", "message": "Fax status: busy"}
    assert stored["history"] == [{"at": NOW_MS, "status": "retrying", "code": "busy"}]
    assert not {"startedAt", "provider_id", "completedAt", "failed_as"} & stored.keys()


def test_the_error_of_an_earlier_attempt_is_removed_when_a_later_attempt_is_sent(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.retry_later(claimed(ledger), "busy", "Fax status: busy")
    ledger.complete(claimed(ledger, mail(attempt=2)), "telnyx", "f-2")
    assert "error" not in aws.item()
    assert [line.get("code") for line in aws.item()["history"]] == ["busy", None]
