"""Earlier tries whose outcome is unknown, and the verbs that settle them."""

import pytest

from mailroom.ledger.claims import Try
from mailroom.ledger.ledger import Ledger
from mailroom.message.outcome import ANY_ACCOUNT
from tests.support.unit.fakes import Meddler, asked_twice
from tests.support.unit.shared import KEY, LEASE, LEDGER, TTL, Aws, FakeClock, claimed, crash, mail
from tests.support.unit.verbs import OWN_VERBS

A, B = "twilio/AC1", "aws/own"


@pytest.mark.parametrize("verb", ["hand_back", "retry_later"])
@pytest.mark.parametrize("crashes", [0, 2])
def test_a_worker_that_hands_back_its_claim_or_retries_later_removes_all_unsettled_tries(
    ledger: Ledger, clock: FakeClock, aws: Aws, verb: str, crashes: int
) -> None:
    for _ in range(crashes):
        crash(ledger, clock, account=A)
    claim = claimed(ledger, account=A)
    ledger.checkpoint(claim, "telnyx", "p-1")
    OWN_VERBS[verb](ledger, claim)
    assert aws.item().keys().isdisjoint({"unsettled_tries", "startedAt"})
    clock.advance(1)
    again = claimed(ledger, mail(attempt=2 if verb == "retry_later" else 1))
    assert again.unsettled == ()
    assert aws.item()["unsettled_tries"] == [Try(int(clock() * 1000), ANY_ACCOUNT).text]


def test_each_claim_adds_an_unsettled_try_and_returns_the_earlier_tries(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    began: list[int] = []
    for _ in range(3):
        claim = claimed(ledger)
        assert [earlier.began for earlier in claim.unsettled] == began
        began.append(int(clock() * 1000))
        clock.advance(LEASE)
    assert aws.item()["unsettled_tries"] == [f"{at} " for at in began]


def test_the_first_claim_after_a_dead_letter_is_marked_as_redriven_but_a_second_claim_is_not(
    ledger: Ledger, clock: FakeClock
) -> None:
    assert not claimed(ledger).redriven
    ledger.dead_lettered(KEY)
    clock.advance(LEASE)
    assert claimed(ledger).redriven
    clock.advance(LEASE)
    assert not claimed(ledger).redriven


@pytest.mark.parametrize("verb", OWN_VERBS)
def test_a_ledger_write_repeated_after_a_lost_response_takes_effect_once(
    aws: Aws, clock: FakeClock, verb: str
) -> None:
    client = Meddler(aws.dynamodb)
    ledger = Ledger(client, LEDGER, lease=LEASE, ttl=TTL, clock=clock)  # type: ignore[arg-type]
    claim = claimed(ledger)
    ledger.checkpoint(claim, "ses", "p-9")
    client._changes["update_item"] = asked_twice
    OWN_VERBS[verb](ledger, claim)
    stored = aws.item()
    assert stored.get("attempts", 0) == (1 if verb in {"complete", "fail", "retry_later"} else 0)
    assert len(stored.get("history", ())) == stored.get("attempts", 0)
