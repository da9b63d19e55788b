"""What is not known of earlier tries: since when, and what settles it."""

import pytest

from mailroom.ledger.claims import Checkpoint, Try
from mailroom.ledger.ledger import Ledger
from mailroom.message.outcome import ANY_ACCOUNT
from tests.support.unit.fakes import Meddler, asked_twice
from tests.support.unit.shared import KEY, LEASE, LEDGER, NOW_MS, TTL, Aws, FakeClock, claimed, mail
from tests.support.unit.verbs import OWN_VERBS, watched

A, B = "twilio/AC1", "aws/own"


@pytest.mark.parametrize("verb", ["hand_back", "retry_later"])
@pytest.mark.parametrize("crashes", [0, 2])
def test_what_settles_a_try_leaves_nothing_unsettled(
    ledger: Ledger, clock: FakeClock, aws: Aws, verb: str, crashes: int
) -> None:
    for _ in range(crashes):
        claimed(ledger, account=A)
        clock.advance(LEASE)
    claim = claimed(ledger, account=A)
    ledger.checkpoint(claim, "telnyx", "p-1")
    OWN_VERBS[verb](ledger, claim)
    assert aws.item().keys().isdisjoint({"unsettled_tries", "startedAt"})
    clock.advance(1)
    again = claimed(ledger, mail(attempt=2 if verb == "retry_later" else 1))
    assert again.unsettled == ()
    assert aws.item()["unsettled_tries"] == [Try(int(clock() * 1000), ANY_ACCOUNT).text]


def test_a_release_leaves_nothing_unsettled_where_no_earlier_try_is_in_doubt(
    ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    ledger.release(claimed(ledger, account=A))
    assert aws.item().keys().isdisjoint({"unsettled_tries", "startedAt"})
    clock.advance(1)
    assert claimed(ledger).unsettled == ()


def test_a_release_does_not_settle_an_earlier_try(ledger: Ledger, clock: FakeClock, aws: Aws) -> None:
    claimed(ledger, account=A)
    clock.advance(LEASE)
    ledger.release(claimed(ledger, account=B))
    assert "startedAt" not in aws.item()
    again = claimed(ledger, account=B)
    assert again.unsettled == (Try(NOW_MS, A),)


def test_a_crash_while_a_fax_is_followed_keeps_its_checkpoint_and_its_time(
    ledger: Ledger, clock: FakeClock
) -> None:
    ledger.checkpoint(claimed(ledger), "telnyx", "p-1")
    clock.advance(LEASE)
    again = claimed(ledger)
    assert (again.unsettled[0].began, again.checkpoint) == (NOW_MS, Checkpoint("p-1", "telnyx", NOW_MS))


def test_all_accounts_of_several_tries_are_known(ledger: Ledger, clock: FakeClock) -> None:
    for account in (A, B, A):
        claimed(ledger, account=account)
        clock.advance(LEASE)
    assert claimed(ledger, account=A).accounts == {A, B}


def test_a_claim_whose_answer_was_lost_still_knows_where_earlier_tries_were_made(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claimed(ledger, account=B)
    clock.advance(LEASE)
    twice, _ = watched(aws, clock, twice=True)
    assert claimed(twice, account=A).accounts == {B}


def test_tries_that_nobody_can_be_asked_about_are_counted(ledger: Ledger, aws: Aws, clock: FakeClock) -> None:
    began: list[int] = []
    for _ in range(3):
        claim = claimed(ledger)
        assert [each.began for each in claim.unsettled] == began
        began.append(int(clock() * 1000))
        clock.advance(LEASE)
    assert aws.item()["unsettled_tries"] == [f"{at} " for at in began]


def test_who_redrives_a_dead_letter_is_heard_once(ledger: Ledger, clock: FakeClock) -> None:
    assert not claimed(ledger).redriven
    ledger.dead_lettered(KEY)
    clock.advance(LEASE)
    assert claimed(ledger).redriven
    clock.advance(LEASE)
    assert not claimed(ledger).redriven


def test_a_first_claim_whose_answer_was_lost_is_still_the_first(aws: Aws, clock: FakeClock) -> None:
    ledger, client = watched(aws, clock, twice=True)
    claim = claimed(ledger)
    assert (claim.unsettled, claim.checkpoint, client.names()) == ((), None, ["update_item"])


def test_a_claim_of_a_fax_under_way_whose_answer_was_lost_resumes_it(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claim = claimed(ledger)
    ledger.checkpoint(claim, "telnyx", "p-1")
    ledger.hand_back(claim)
    clock.advance(5)
    twice, _ = watched(aws, clock, twice=True)
    again = claimed(twice)
    assert (again.unsettled, again.checkpoint) == ((), Checkpoint("p-1", "telnyx", NOW_MS))


@pytest.mark.parametrize("verb", OWN_VERBS)
def test_a_verb_whose_answer_was_lost_does_what_it_does_once(aws: Aws, clock: FakeClock, verb: str) -> None:
    client = Meddler(aws.dynamodb)
    ledger = Ledger(client, LEDGER, lease=LEASE, ttl=TTL, clock=clock)  # type: ignore[arg-type]
    claim = claimed(ledger)
    ledger.checkpoint(claim, "ses", "p-9")
    client._changes["update_item"] = asked_twice
    OWN_VERBS[verb](ledger, claim)
    found = aws.item()
    assert found.get("attempts", 0) == (1 if verb in {"complete", "fail", "retry_later"} else 0)
    assert len(found.get("history", ())) == found.get("attempts", 0)
