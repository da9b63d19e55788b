"""An operator's word on a message whose outcome nobody else can tell: conditional on what was shown."""

from collections.abc import Callable
from typing import Literal

import pytest

from mailroom.errors import ClaimLost
from mailroom.ledger.claims import Completed
from mailroom.ledger.ledger import Ledger
from tests.support.unit.shared import KEY, LEASE, NOW_MS, Aws, FakeClock, Item, claimed, mail
from tests.support.unit.verbs import OWN_VERBS, watched

Word = Literal["sent", "failed"]
HOUR = 3600.0
both = pytest.mark.parametrize("word", ["sent", "failed"])


def followed(ledger: Ledger, clock: FakeClock) -> None:
    """A message that its provider took two hours ago, and that is followed since."""
    claim = claimed(ledger)
    ledger.checkpoint(claim, "signalwire", "p-1")
    ledger.hand_back(claim)
    clock.advance(2 * HOUR)


def crashed(ledger: Ledger, clock: FakeClock) -> None:
    """A message whose worker died two hours ago, nobody knows where."""
    claimed(ledger)
    clock.advance(2 * HOUR)


def settled(ledger: Ledger, seen: Item, word: Word, clock: FakeClock) -> bool:
    return ledger.settle(KEY, seen, word, clock() - HOUR)


@both
@pytest.mark.parametrize("reached", [followed, crashed])
def test_a_settled_message_is_over_as_the_operator_said(
    ledger: Ledger, aws: Aws, clock: FakeClock, reached: Callable[[Ledger, FakeClock], None], word: Word
) -> None:
    reached(ledger, clock)
    seen = aws.item()
    assert settled(ledger, seen, word, clock)
    found = aws.item()
    assert (found["status"], found["completedAt"], found["attempts"]) == (word, NOW_MS + 7_200_000, 1)
    assert found["history"] == [{"at": NOW_MS + 7_200_000, "status": word, "code": "settled"}]
    assert ("failed_on" in found) == (found.get("error", {}).get("code") == "settled") == (word == "failed")
    assert found.get("provider_id") == seen.get("provider_id")
    assert ledger.claim(mail()) == Completed()


@both
def test_what_waits_for_its_next_try_is_settled_too_and_has_no_error_once_it_is_sent(
    ledger: Ledger, aws: Aws, clock: FakeClock, word: Word
) -> None:
    ledger.retry_later(claimed(ledger), "busy", "Fax status: busy")
    assert settled(ledger, aws.item(), word, clock)
    found = aws.item()
    assert (found["status"], found["attempts"]) == (word, 2)
    assert found.get("error", {}).get("code") == (None if word == "sent" else "settled")
    assert ledger.claim(mail(attempt=2)) == Completed()


@both
@pytest.mark.parametrize("verb", OWN_VERBS)
def test_a_worker_that_follows_it_still_changes_nothing_any_more(
    ledger: Ledger, aws: Aws, clock: FakeClock, verb: str, word: Word
) -> None:
    followed(ledger, clock)
    late = claimed(ledger)
    assert settled(ledger, aws.item(), word, clock)
    before = aws.item()
    with pytest.raises(ClaimLost):
        OWN_VERBS[verb](ledger, late)
    assert aws.item() == before


def test_a_followed_message_is_settled_whoever_follows_it_now(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    followed(ledger, clock)
    seen = aws.item()
    claimed(ledger)  # it asks its provider again and again, and is claimed for that each time
    assert settled(ledger, seen, "failed", clock)


@both
@pytest.mark.parametrize("age", [LEASE, HOUR - 0.001])
def test_what_a_worker_may_hold_or_a_provider_be_at_is_not_settled(
    ledger: Ledger, aws: Aws, clock: FakeClock, age: float, word: Word
) -> None:
    claim = claimed(ledger)
    clock.advance(age)
    assert not settled(ledger, aws.item(), word, clock)
    clock.advance(-age)
    ledger.checkpoint(claim, "signalwire", "p-1")
    ledger.hand_back(claim)
    clock.advance(age)
    before = aws.item()
    assert not settled(ledger, before, word, clock)
    assert aws.item() == before


def _claimed_anew(ledger: Ledger, clock: FakeClock) -> None:
    claimed(ledger)
    clock.advance(2 * HOUR)


def _checkpointed(ledger: Ledger, clock: FakeClock) -> None:
    ledger.checkpoint(claimed(ledger), "signalwire", "p-1")
    clock.advance(2 * HOUR)


def _tried_again(ledger: Ledger, clock: FakeClock) -> None:
    ledger.retry_later(claimed(ledger), "busy", "no")


def _ended(ledger: Ledger, clock: FakeClock) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")


@pytest.mark.parametrize("meanwhile", [_claimed_anew, _checkpointed, _tried_again, _ended])
def test_what_has_moved_on_since_it_was_shown_is_not_settled(
    ledger: Ledger, aws: Aws, clock: FakeClock, meanwhile: Callable[[Ledger, FakeClock], None]
) -> None:
    crashed(ledger, clock)
    seen = aws.item()
    meanwhile(ledger, clock)
    before = aws.item()
    assert not settled(ledger, seen, "sent", clock)
    assert aws.item() == before


def test_another_submit_than_the_one_that_was_shown_is_not_settled(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    followed(ledger, clock)
    seen = aws.item()
    claim = claimed(ledger)
    ledger.retry_later(claim, "busy", "no")
    ledger.checkpoint(claimed(ledger, mail(attempt=2)), "signalwire", "p-2")
    clock.advance(2 * HOUR)
    assert not settled(ledger, {**seen, "attempts": 1}, "failed", clock)


def test_what_the_ledger_does_not_know_is_not_settled(ledger: Ledger, aws: Aws, clock: FakeClock) -> None:
    assert not settled(ledger, {"status": "sending"}, "failed", clock)
    assert aws.item() == {}


def test_a_write_whose_answer_was_lost_counts_its_attempt_once(aws: Aws, clock: FakeClock) -> None:
    ledger, _ = watched(aws, clock, twice=True)
    plain, _ = watched(aws, clock)
    followed(plain, clock)
    settled(ledger, aws.item(), "sent", clock)
    found = aws.item()
    assert (found["status"], found["attempts"], len(found["history"])) == ("sent", 1, 1)
