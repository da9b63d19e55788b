"""Erasing in the ledger: what waits is cancelled, what is over is emptied, and neither is ever sent again."""

from typing import Any

import pytest

from mailroom.aws.dynamo_values import number
from mailroom.ledger.change import LedgerChange
from mailroom.ledger.claims import Completed
from mailroom.ledger.erasure import ERASED_UNSENT, KEPT, UNSENT, Erasure
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import Outdated, observe
from mailroom.message.message import MAX_AHEAD_SECONDS, Key
from mailroom.message.outcome import Event
from mailroom.outcomes import callback_of, retry_of
from tests.support.told import told
from tests.support.unit.shared import LEDGER, NOW_MS, TTL, Aws, FakeClock, claimed, mail

KEY = Key("m-1", "mail")
ADA = "ada@example.com"


@pytest.fixture
def erasure(aws: Aws, clock: FakeClock) -> Erasure:
    return Erasure(aws.dynamodb, LEDGER, TTL, clock)


def cancelled(erasure: Erasure, due: float = 0) -> bool:
    return erasure.cancel(KEY, ERASED_UNSENT, condition=UNSENT, due=due)


def sent(ledger: Ledger) -> None:
    """A message to Ada that a provider has accepted."""
    message = mail(to=ADA, callback_url="https://producer.example/ada")
    ledger.complete(claimed(ledger, message), "ses", "p-1", {"diagnostic_code": f"250 {ADA}"})


def test_what_waits_for_its_time_is_cancelled_and_a_late_copy_finds_it_completed(
    erasure: Erasure, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    ledger.schedule(mail(to=ADA), clock() + 86_400)
    assert cancelled(erasure)
    assert aws.item()["status"] == "cancelled"
    assert isinstance(ledger.claim(mail(to=ADA)), Completed)


def test_what_was_erased_is_remembered_until_its_schedule_has_fired_and_as_long_again_as_any_message(
    erasure: Erasure, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    due = clock() + MAX_AHEAD_SECONDS
    ledger.schedule(mail(to=ADA), due)
    assert cancelled(erasure, due)
    assert erasure.empty(KEY, aws.item())
    assert aws.item()["ttl"] == due + TTL
    clock.now = due
    assert isinstance(ledger.claim(mail(to=ADA)), Completed)


def test_what_lies_in_a_queue_before_any_claim_is_cancelled_and_nothing_of_the_person_enters_the_ledger(
    erasure: Erasure, ledger: Ledger, aws: Aws
) -> None:
    assert cancelled(erasure)
    assert ADA not in str(aws.item())
    assert isinstance(ledger.claim(mail(to=ADA)), Completed)


def test_what_a_worker_gave_back_unsent_is_cancelled(erasure: Erasure, ledger: Ledger) -> None:
    ledger.release(claimed(ledger), "retry", "throttled")
    assert cancelled(erasure)
    assert isinstance(ledger.claim(mail()), Completed)


def test_an_attempt_that_waits_to_be_repeated_is_cancelled_and_its_copy_dropped(
    erasure: Erasure, ledger: Ledger
) -> None:
    ledger.retry_later(claimed(ledger), "busy", "Fax status: busy")
    assert cancelled(erasure)
    assert isinstance(ledger.claim(mail(attempt=2)), Completed)


def test_what_a_worker_holds_is_not_cancelled_and_the_worker_may_end_it(
    erasure: Erasure, ledger: Ledger, aws: Aws
) -> None:
    claim = claimed(ledger)
    assert not cancelled(erasure)
    ledger.complete(claim, "ses", "p-1")
    assert aws.item()["status"] == "sent"


def test_what_a_provider_is_still_at_is_not_cancelled(erasure: Erasure, ledger: Ledger) -> None:
    claim = claimed(ledger)
    ledger.checkpoint(claim, "signalwire", "f-1")
    ledger.hand_back(claim)
    assert not cancelled(erasure)


def test_what_is_over_is_not_cancelled(erasure: Erasure, ledger: Ledger, aws: Aws) -> None:
    sent(ledger)
    assert not cancelled(erasure)
    assert aws.item()["status"] == "sent"


def test_an_emptied_item_has_nothing_but_what_is_listed_and_keeps_status_and_end(
    erasure: Erasure, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    sent(ledger)
    before = aws.item()
    clock.advance(60)
    assert erasure.empty(KEY, before)
    after = aws.item()
    assert after.keys() <= KEPT
    assert not after.keys() & {"to", "callback_url", "provider_id", "diagnostic_code"}
    for name in ("status", "completedAt", "updatedAt", "ttl"):
        assert after[name] == before[name]
    assert after["erased_at"] == NOW_MS + 60_000
    assert after["history"] == [{"at": NOW_MS, "status": "sent"}]


def test_the_reason_of_a_failure_keeps_its_code_and_loses_its_words(
    erasure: Erasure, ledger: Ledger, aws: Aws
) -> None:
    ledger.fail(claimed(ledger, mail(to=ADA)), "invalid", f"to: {ADA!r} is wrong")
    assert erasure.empty(KEY, aws.item())
    assert aws.item()["error"] == {"code": "invalid", "message": "erased"}


def test_a_late_copy_of_an_emptied_message_is_not_sent(erasure: Erasure, ledger: Ledger, aws: Aws) -> None:
    sent(ledger)
    erasure.empty(KEY, aws.item())
    assert isinstance(ledger.claim(mail(to=ADA)), Completed)


def test_a_late_event_brings_nothing_of_the_person_back(
    erasure: Erasure, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    sent(ledger)
    erasure.empty(KEY, aws.item())
    before = aws.item()
    event: Event = told(KEY, "bounced", provider_id="p-1", facts={"diagnostic_code": f"550 {ADA}"})
    assert isinstance(observe(ledger, [event]), Outdated)
    assert aws.item() == before


def test_emptying_has_no_consequence_in_the_ledgers_stream(
    erasure: Erasure, ledger: Ledger, aws: Aws
) -> None:
    sent(ledger)
    old = aws.item()
    erasure.empty(KEY, old)
    change = LedgerChange(old, aws.item())
    assert not change.moved
    assert callback_of(change, 20) is None
    assert retry_of(change, 600) is None


def test_cancelling_is_told_to_who_asked_for_callbacks(
    erasure: Erasure, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    ledger.schedule(mail(to=ADA, callback_url="https://producer.example/cb"), clock() + 86_400)
    old = aws.item()
    cancelled(erasure)
    callback = callback_of(LedgerChange(old, aws.item()), 20)
    assert callback is not None
    assert callback.payload["status"] == "cancelled"
    assert ADA not in str(callback.payload)


def test_what_has_changed_since_it_was_read_is_not_emptied(
    erasure: Erasure, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    sent(ledger)
    read = aws.item()
    clock.advance(1)
    observe(ledger, [told(KEY, "delivered", provider_id="p-1")])
    assert not erasure.empty(KEY, read)
    assert "erased_at" not in aws.item()


def test_what_is_not_over_is_not_emptied(erasure: Erasure, ledger: Ledger, aws: Aws) -> None:
    claimed(ledger, mail(to=ADA))
    assert not erasure.empty(KEY, aws.item())
    assert aws.item()["to"] == ADA


def test_emptying_twice_is_emptying_once(
    erasure: Erasure, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    sent(ledger)
    erasure.empty(KEY, aws.item())
    before = aws.item()
    clock.advance(60)
    assert erasure.empty(KEY, before)
    assert aws.item() == before


def test_an_attribute_that_nobody_has_thought_of_goes(erasure: Erasure, ledger: Ledger, aws: Aws) -> None:
    sent(ledger)
    where: Any = {"id": {"S": KEY.id}, "event_type": {"S": KEY.event_type}}
    aws.dynamodb.update_item(
        TableName=LEDGER,
        Key=where,
        UpdateExpression="SET shoe_size = :size",
        ExpressionAttributeValues={":size": number(38)},
    )
    erasure.empty(KEY, aws.item())
    assert "shoe_size" not in aws.item()


def test_an_emptied_item_is_never_reopened(erasure: Erasure, ledger: Ledger, aws: Aws) -> None:
    sent(ledger)
    erasure.empty(KEY, aws.item())
    before = aws.item()
    assert ledger.reopen(KEY, aws.item()) is None
    assert aws.item() == before
