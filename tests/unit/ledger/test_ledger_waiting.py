"""Before a claim and after an outcome: refuse, schedule, cancel, reopen."""

from collections.abc import Callable

import pytest

from mailroom.errors import Malformed
from mailroom.ledger.claims import Completed
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.message.message import Message
from tests.support.told import told
from tests.support.unit.shared import (
    KEY,
    LEDGER,
    NOW,
    NOW_MS,
    TTL,
    Aws,
    claimed,
    item,
    mail,
)


def test_a_refused_item_is_failed_with_its_reason_and_the_days_index(ledger: Ledger, aws: Aws) -> None:
    assert ledger.refuse(item(callback_url="https://shop.example/told"), "invalid", "to: is missing")
    found = aws.item()
    assert (found["status"], found["completedAt"]) == ("failed", NOW_MS)
    assert found["error"] == {"code": "invalid", "message": "to: is missing"}
    assert found["failed_on"] == "2026-11-21#mail"
    assert (found["to"], found["callback_url"]) == ("vincent@example.com", "https://shop.example/told")
    assert found["history"] == [{"at": NOW_MS, "status": "failed", "code": "invalid"}]


def test_a_refused_item_keeps_its_recipient_by_either_name(ledger: Ledger, aws: Aws) -> None:
    ledger.refuse(item(to=..., email="theo@example.com"), "invalid", "no")
    assert aws.item()["to"] == "theo@example.com"


@pytest.mark.parametrize("wrong", [5, {"a": 1}, ["a@example.com"], None, "", "x" * 390_000])
def test_nothing_but_the_key_needs_to_be_right_to_be_refused(ledger: Ledger, aws: Aws, wrong: object) -> None:
    assert ledger.refuse(item(to=wrong, callback_url=wrong), "invalid", "no")
    found = aws.item()
    assert found["status"] == "failed"
    assert not {"to", "callback_url"} & set(found)


def test_without_a_key_nothing_can_be_refused(ledger: Ledger) -> None:
    with pytest.raises(Malformed):
        ledger.refuse({"event_type": "mail"}, "invalid", "no")


def test_a_long_event_type_has_an_index_key_of_bounded_length(ledger: Ledger, aws: Aws) -> None:
    ledger.refuse({"id": "m-1", "event_type": "x" * 900}, "invalid", "no")
    assert aws.item(event_type="x" * 900)["failed_on"] == "2026-11-21#" + "x" * 40


def test_what_is_under_way_or_done_is_not_refused(ledger: Ledger, aws: Aws) -> None:
    claim = claimed(ledger)
    under_way = ledger.refuse(item(), "invalid", "no")
    ledger.complete(claim, "ses", "p-1")
    done = ledger.refuse(item(), "invalid", "no")
    assert (under_way, done) == (False, True)  # what is under way must come back, what is done need not
    assert aws.item()["status"] == "sent"


def test_a_scheduled_message_says_when_and_lives_as_long_after_that(ledger: Ledger, aws: Aws) -> None:
    assert ledger.schedule(mail(), NOW + 86400)
    found = aws.item()
    assert (found["status"], found["scheduledFor"]) == ("scheduled", "2026-11-22T09:00:00.000Z")
    assert found["ttl"] == int(NOW + 86400 + TTL)


def test_a_scheduled_message_can_be_scheduled_again_and_then_claimed(ledger: Ledger) -> None:
    assert ledger.schedule(mail(), NOW + 86400)
    assert ledger.schedule(mail(), NOW + 86400)
    assert claimed(ledger).unsettled == ()


def test_a_cancelled_message_is_over_and_says_why(ledger: Ledger, aws: Aws) -> None:
    ledger.schedule(mail(), NOW + 86400)
    assert ledger.cancel(KEY, "the item was deleted")
    found = aws.item()
    assert (found["status"], found["completedAt"]) == ("cancelled", NOW_MS)
    assert found["error"] == {"code": "cancelled", "message": "the item was deleted"}
    assert "failed_on" not in found
    assert ledger.claim(mail()) == Completed()


def test_what_was_due_before_is_lost_and_not_cancelled(ledger: Ledger, aws: Aws) -> None:
    ledger.schedule(mail(), NOW)
    assert not ledger.cancel(KEY, "the item was deleted", since=NOW + 0.001)
    assert ledger.lose(KEY, "the item is gone")
    found = aws.item()
    assert (found["status"], found["completedAt"]) == ("failed", NOW_MS)
    assert found["error"] == {"code": "content_gone", "message": "the item is gone"}
    assert ledger.claim(mail()) == Completed()


def test_what_the_ledger_does_not_know_is_neither_cancelled_nor_lost(ledger: Ledger, aws: Aws) -> None:
    assert not ledger.cancel(KEY, "the item was deleted", since=0)
    assert not ledger.lose(KEY, "the item is gone")
    assert aws.item() == {}


def _released(ledger: Ledger) -> None:
    ledger.release(claimed(ledger))


def _completed(ledger: Ledger) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")


def _retrying(ledger: Ledger) -> None:
    ledger.retry_later(claimed(ledger), "busy", "no")


def _sending(ledger: Ledger) -> None:
    claimed(ledger)


@pytest.mark.parametrize("reached", [_sending, _released, _retrying, _completed])
def test_what_has_left_the_waiting_room_is_neither_cancelled_nor_scheduled(
    ledger: Ledger, aws: Aws, reached: Callable[[Ledger], None]
) -> None:
    ledger.schedule(mail(), NOW + 3600)
    reached(ledger)
    before = aws.item()
    assert not ledger.cancel(KEY, "the item was deleted")
    assert not ledger.lose(KEY, "the item is gone")
    assert not ledger.schedule(mail(), NOW + 3600)
    assert aws.item() == before


def test_a_reopened_message_can_be_sent_once_more_by_its_next_attempt(ledger: Ledger, aws: Aws) -> None:
    ledger.fail(claimed(ledger), "rejected", "no")
    assert ledger.reopen(KEY, aws.item()) == 2
    found = aws.item()
    assert (found["status"], found["generation"]) == ("retrying", 1)
    assert not {"completedAt", "startedAt", "provider_id", "error", "failed_on"} & set(found)
    assert found["history"][-1] == {"at": NOW_MS, "status": "retrying", "code": "reopened"}
    again = claimed(ledger, mail(attempt=2))
    assert (again.unsettled, again.checkpoint) == ((), None)
    ledger.complete(again, "ses", "p-2")
    assert ledger.reopen(KEY, aws.item()) == 3
    assert aws.item()["generation"] == 2


def test_a_message_without_an_outcome_is_not_reopened(ledger: Ledger, aws: Aws) -> None:
    assert ledger.reopen(KEY, aws.item()) is None
    claimed(ledger)
    assert ledger.reopen(KEY, aws.item()) is None
    assert "generation" not in aws.item()


def _sent_again(ledger: Ledger, aws: Aws) -> None:
    ledger.reopen(KEY, aws.item())
    ledger.complete(claimed(ledger, mail(attempt=2)), "ses", "p-2")


def _failed_again(ledger: Ledger, aws: Aws) -> None:
    ledger.reopen(KEY, aws.item())
    ledger.fail(claimed(ledger, mail(attempt=2)), "rejected", "no")


def _delivered(ledger: Ledger, _aws: Aws) -> None:
    observe(ledger, [told(KEY, "delivered")])


@pytest.mark.parametrize("meanwhile", [_sent_again, _failed_again, _delivered])
def test_what_has_changed_since_it_was_judged_is_not_reopened(
    ledger: Ledger, aws: Aws, meanwhile: Callable[[Ledger, Aws], None]
) -> None:
    ledger.fail(claimed(ledger), "outcome_unknown", "held")
    seen = aws.item()
    meanwhile(ledger, aws)
    before = aws.item()
    assert "completedAt" in before
    assert ledger.reopen(KEY, seen) is None
    assert aws.item() == before


def test_what_was_reopened_and_ended_without_an_attempt_is_known_by_its_generation(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.refuse(item(), "invalid", "no")
    seen = aws.item()
    assert ledger.reopen(KEY, seen) == 1
    aws.put(LEDGER, **seen, generation=1)
    assert ledger.reopen(KEY, seen) is None
    assert ledger.reopen(KEY, aws.item()) == 1


def test_a_late_event_of_one_of_several_recipients_is_a_change_too(ledger: Ledger, aws: Aws) -> None:
    both = ["ada@example.com", "eve@example.com"]
    ledger.complete(claimed(ledger, mail(to=both)), "ses", "p-1")
    observe(ledger, [told(KEY, "bounced", several=True, detail="no")])
    seen = aws.item()
    assert seen["status"] == "bounced"
    observe(ledger, [told(KEY, "complained", several=True, recipients=(both[0],))])
    changed = {**aws.item(), "status": "bounced"}  # as if the whole had stayed
    aws.put(LEDGER, **changed)
    assert changed["recipients"] != seen["recipients"]
    assert ledger.reopen(KEY, seen) is None
    assert ledger.reopen(KEY, changed) == 2


def test_a_message_of_another_channel_with_the_same_id_is_another_message(ledger: Ledger, aws: Aws) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    assert ledger.schedule(Message(id="m-1", event_type="sms"), NOW + 3600)
    assert aws.item()["status"] == "sent"
