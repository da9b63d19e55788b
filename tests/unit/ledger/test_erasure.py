"""Erasure in the ledger: unsent messages are cancelled, ended ones are emptied, and neither is sent again."""

from collections.abc import Callable

import pytest

from mailroom.ledger.change import LedgerChange
from mailroom.ledger.claims import Completed
from mailroom.ledger.erasure import ERASED_UNSENT, KEPT, Erasure
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import Outdated, observe
from mailroom.ledger.status_reader import of_ledger
from mailroom.ledger.waits import SHARDS
from mailroom.message.message import MAX_AHEAD_SECONDS, Key
from mailroom.message.outcome import Event
from mailroom.outcomes import callback_of, retry_of
from tests.support.told import ses_event
from tests.support.unit.shared import LEDGER, NOW, NOW_MS, TTL, Aws, FakeClock, claimed, item, mail
from tests.support.unit.waiting import hold, waits_of

KEY = Key("m-1", "mail")
ADA = "ada@example.com"


@pytest.fixture
def erasure(aws: Aws, clock: FakeClock) -> Erasure:
    return Erasure(aws.dynamodb, LEDGER, TTL, clock)


def cancelled(erasure: Erasure) -> bool:
    return erasure.cancel(KEY, ERASED_UNSENT)


def send_to_ada(ledger: Ledger) -> None:
    """Send a message to Ada."""
    message = mail(to=ADA, callback_url="https://producer.example/ada")
    ledger.complete(claimed(ledger, message), "ses", "p-1", {"diagnostic_code": f"250 {ADA}"})


def unknown(ledger: Ledger) -> None:
    """Leave the message in its queue, without an item."""


def scheduled(ledger: Ledger) -> None:
    hold(ledger, mail(to=ADA))


def claim_and_release(ledger: Ledger) -> None:
    ledger.release(claimed(ledger), "retry", "throttled")


def retrying(ledger: Ledger) -> None:
    ledger.retry_later(claimed(ledger), "busy", "Fax status: busy")


def claim_only(ledger: Ledger) -> None:
    claimed(ledger)


def followed(ledger: Ledger) -> None:
    claim = claimed(ledger)
    ledger.checkpoint(claim, "signalwire", "f-1")
    ledger.hand_back(claim)


@pytest.mark.parametrize("reached", [unknown, scheduled, claim_and_release, retrying])
def test_erasing_an_unsent_message_cancels_it_and_prevents_claims_of_later_copies(
    erasure: Erasure, ledger: Ledger, aws: Aws, reached: Callable[[Ledger], None]
) -> None:
    reached(ledger)
    assert cancelled(erasure)
    assert aws.item()["status"] == "cancelled"
    assert (ADA in str(aws.item())) == (reached is scheduled)
    attempt = 2 if reached is retrying else 1
    assert isinstance(ledger.claim(mail(to=ADA, attempt=attempt)), Completed)


@pytest.mark.parametrize("reached", [claim_only, followed, send_to_ada])
def test_erasing_does_not_cancel_a_message_that_may_have_been_sent(
    erasure: Erasure, ledger: Ledger, aws: Aws, reached: Callable[[Ledger], None]
) -> None:
    reached(ledger)
    before = aws.item()
    assert not cancelled(erasure)
    assert aws.item() == before


def test_a_message_that_was_erased_while_it_waited_is_not_listed_as_due_and_cannot_be_held_again(
    erasure: Erasure, ledger: Ledger, aws: Aws
) -> None:
    due = NOW + MAX_AHEAD_SECONDS
    hold(ledger, mail(to=ADA), due)
    assert cancelled(erasure)
    assert erasure.empty(KEY, aws.item())
    assert [row for shard in range(SHARDS) for row in waits_of(ledger).due(shard, due)] == []
    assert not hold(ledger, mail(to=ADA), due, version="a copy in a queue")


def test_an_erased_ledger_item_keeps_its_status_and_times_and_loses_all_personal_attributes(
    erasure: Erasure, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    send_to_ada(ledger)
    aws.put(LEDGER, **aws.item(), shoe_size=38)
    before = aws.item()
    clock.advance(60)
    assert erasure.empty(KEY, before)
    after = aws.item()
    assert after.keys() <= KEPT
    assert not after.keys() & {"to", "callback_url", "provider_id", "diagnostic_code", "shoe_size"}
    for name in ("status", "completedAt", "updatedAt", "ttl"):
        assert after[name] == before[name]
    assert after["erased_at"] == NOW_MS + 60_000
    assert after["history"] == [{"at": NOW_MS, "status": "sent"}]


def test_the_error_of_an_erased_ledger_item_keeps_its_code_and_loses_its_message(
    erasure: Erasure, ledger: Ledger, aws: Aws
) -> None:
    ledger.fail(claimed(ledger, mail(to=ADA)), "invalid", f"to: {ADA!r} is wrong")
    assert erasure.empty(KEY, aws.item())
    assert aws.item()["error"] == {"code": "invalid", "message": "erased"}


@pytest.mark.parametrize("attempts", [0, 1])
def test_an_erased_message_has_as_many_attempts_as_before_its_erasure(
    erasure: Erasure, ledger: Ledger, aws: Aws, attempts: int
) -> None:
    if attempts:
        send_to_ada(ledger)
    else:
        ledger.refuse(item(to=ADA), "invalid", "subject: is missing")
    assert of_ledger(aws.item()).attempts == attempts
    assert erasure.empty(KEY, aws.item())
    assert of_ledger(aws.item()).attempts == attempts


def test_the_erasure_of_a_ledger_item_does_not_cause_a_callback_or_a_retry(
    erasure: Erasure, ledger: Ledger, aws: Aws
) -> None:
    send_to_ada(ledger)
    old = aws.item()
    erasure.empty(KEY, old)
    change = LedgerChange(old, aws.item())
    assert not change.moved
    assert callback_of(change, 20) is None
    assert retry_of(change, 600) is None


def test_a_message_cancelled_by_erasing_still_causes_its_callback_without_personal_data(
    erasure: Erasure, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    hold(ledger, mail(to=ADA, callback_url="https://producer.example/cb"))
    old = aws.item()
    cancelled(erasure)
    callback = callback_of(LedgerChange(old, aws.item()), 20)
    assert callback is not None
    assert callback.payload["status"] == "cancelled"
    assert ADA not in str(callback.payload)


def test_a_ledger_item_that_changed_after_it_was_read_is_not_erased(
    erasure: Erasure, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    send_to_ada(ledger)
    read = aws.item()
    clock.advance(1)
    observe(ledger, [ses_event(KEY, "delivered", provider_id="p-1")])
    assert not erasure.empty(KEY, read)
    assert "erased_at" not in aws.item()


def test_the_ledger_item_of_an_unfinished_message_is_not_erased(
    erasure: Erasure, ledger: Ledger, aws: Aws
) -> None:
    claimed(ledger, mail(to=ADA))
    assert not erasure.empty(KEY, aws.item())
    assert aws.item()["to"] == ADA


def test_an_erased_ledger_item_is_not_changed_by_a_late_event_claim_reopening_or_second_erasure(
    erasure: Erasure, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    send_to_ada(ledger)
    erasure.empty(KEY, aws.item())
    before = aws.item()
    clock.advance(60)
    event: Event = ses_event(KEY, "bounced", provider_id="p-1", facts={"diagnostic_code": f"550 {ADA}"})
    assert isinstance(observe(ledger, [event]), Outdated)
    assert isinstance(ledger.claim(mail(to=ADA)), Completed)
    assert ledger.reopen(KEY, before) is None
    assert erasure.empty(KEY, before)
    assert aws.item() == before
