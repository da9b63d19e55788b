"""Verbs before a claim and after an outcome: refuse, hold, cancel, lose, reopen."""

import pytest

from mailroom.errors import Malformed
from mailroom.ledger.claims import Completed
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.ledger.waits import SHARDS, WaitingRow
from tests.support.tables import failure
from tests.support.told import ses_event
from tests.support.unit.shared import KEY, LEDGER, NOW, NOW_MS, Aws, claimed, item, mail
from tests.support.unit.verbs import OWN_VERBS
from tests.support.unit.waiting import hold, waits_of


def waiting_rows(ledger: Ledger) -> list[WaitingRow]:
    """Return the marked messages that are due within a day."""
    return [row for shard in range(SHARDS) for row in waits_of(ledger).due(shard, NOW + 86_400)]


def test_the_ledger_records_an_invalid_mailbox_item_as_failed_with_the_reason_in_the_failure_index(
    ledger: Ledger, aws: Aws
) -> None:
    assert ledger.refuse(item(callback_url="https://shop.example/told"), "invalid", "to: is missing")
    stored = aws.item()
    assert (stored["status"], stored["completedAt"]) == ("failed", NOW_MS)
    assert stored["error"] == {"code": "invalid", "message": "to: is missing"}
    assert stored.items() >= failure(KEY, "failed", NOW_MS).items()
    assert (stored["to"], stored["callback_url"]) == ("vincent@example.com", "https://shop.example/told")
    assert stored["history"] == [{"at": NOW_MS, "status": "failed", "code": "invalid"}]


def test_the_ledger_stores_the_recipient_of_an_invalid_mailbox_item_from_its_attribute_email(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.refuse(item(to=..., email="theo@example.com"), "invalid", "no")
    assert aws.item()["to"] == "theo@example.com"


@pytest.mark.parametrize("wrong", [5, {"a": 1}, ["a@example.com"], None, "", "x" * 390_000])
def test_a_mailbox_item_with_any_invalid_attribute_but_a_valid_key_is_recorded_as_failed(
    ledger: Ledger, aws: Aws, wrong: object
) -> None:
    assert ledger.refuse(item(to=wrong, callback_url=wrong, template=wrong), "invalid", "no")
    stored = aws.item()
    assert stored["status"] == "failed"
    assert not {"to", "callback_url", "template"} & set(stored)


def test_the_ledger_item_of_an_invalid_mailbox_item_contains_the_name_of_its_template(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.refuse(item(to="nobody", template="prices"), "invalid", "no")
    assert aws.item()["template"] == "prices"


def test_a_mailbox_item_without_an_id_cannot_be_recorded_as_failed(ledger: Ledger) -> None:
    with pytest.raises(Malformed):
        ledger.refuse({"event_type": "mail"}, "invalid", "no")


def test_a_cancelled_message_has_a_reason_and_cannot_be_claimed(ledger: Ledger, aws: Aws) -> None:
    hold(ledger)
    assert ledger.cancel(KEY, "the item was deleted")
    stored = aws.item()
    assert (stored["status"], stored["completedAt"]) == ("cancelled", NOW_MS)
    assert stored["error"] == {"code": "cancelled", "message": "the item was deleted"}
    assert "failed_as" not in stored
    assert ledger.claim(mail()) == Completed()
    assert [row.waits for row in waiting_rows(ledger)] == [False]


def test_a_due_message_whose_mailbox_item_was_deleted_fails_as_content_gone_instead_of_cancelled(
    ledger: Ledger, aws: Aws
) -> None:
    hold(ledger, due=NOW)
    assert not ledger.cancel(KEY, "the item was deleted", since=NOW + 0.001, version="v-1")
    assert ledger.lose(KEY, "v-1", "the item is gone")
    stored = aws.item()
    assert (stored["status"], stored["completedAt"]) == ("failed", NOW_MS)
    assert stored["error"] == {"code": "content_gone", "message": "the item is gone"}
    assert ledger.claim(mail()) == Completed()


def test_cancelling_or_failing_an_unknown_message_does_not_create_a_ledger_item(
    ledger: Ledger, aws: Aws
) -> None:
    assert not ledger.cancel(KEY, "the item was deleted", since=0, version="v-1")
    assert not ledger.lose(KEY, "v-1", "the item is gone")
    assert aws.item() == {}


@pytest.mark.parametrize("verb", ["doubt", "complete", "checkpoint", ""])
def test_a_message_that_may_have_been_sent_cannot_be_cancelled_held_or_failed_as_content_gone(
    ledger: Ledger, aws: Aws, verb: str
) -> None:
    hold(ledger)
    claim = claimed(ledger)
    if verb in OWN_VERBS:
        OWN_VERBS[verb](ledger, claim)
    before = aws.item()
    assert not ledger.cancel(KEY, "the item was deleted")
    assert not ledger.lose(KEY, "v-1", "the item is gone")
    assert not hold(ledger, version="v-2")
    assert aws.item() == before


def test_a_message_reopened_for_a_resend_can_be_sent_again_by_its_next_attempt(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.fail(claimed(ledger), "rejected", "no")
    assert ledger.reopen(KEY, aws.item()) == 2
    stored = aws.item()
    assert (stored["status"], stored["generation"]) == ("retrying", 1)
    assert not {"completedAt", "startedAt", "provider_id", "error", "failed_as"} & set(stored)
    assert stored["history"][-1] == {"at": NOW_MS, "status": "retrying", "code": "reopened"}
    again = claimed(ledger, mail(attempt=2))
    assert (again.unsettled, again.checkpoint) == ((), None)
    ledger.complete(again, "ses", "p-2")
    assert ledger.reopen(KEY, aws.item()) == 3
    assert aws.item()["generation"] == 2


def test_a_message_without_an_outcome_cannot_be_reopened_for_a_resend(ledger: Ledger, aws: Aws) -> None:
    assert ledger.reopen(KEY, aws.item()) is None
    claimed(ledger)
    assert ledger.reopen(KEY, aws.item()) is None
    assert "generation" not in aws.item()


def test_a_message_cannot_be_reopened_with_a_ledger_item_read_before_an_earlier_reopening(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.refuse(item(), "invalid", "no")
    snapshot = aws.item()
    assert ledger.reopen(KEY, snapshot) == 1
    aws.put(LEDGER, **snapshot, generation=1)
    assert ledger.reopen(KEY, snapshot) is None
    assert ledger.reopen(KEY, aws.item()) == 1


def test_a_message_cannot_be_reopened_with_a_ledger_item_that_lacks_a_recipients_new_outcome(
    ledger: Ledger, aws: Aws
) -> None:
    both = ["ada@example.com", "eve@example.com"]
    ledger.complete(claimed(ledger, mail(to=both)), "ses", "p-1")
    observe(ledger, [ses_event(KEY, "bounced", several=True, detail="no")])
    snapshot = aws.item()
    assert snapshot["status"] == "bounced"
    observe(ledger, [ses_event(KEY, "complained", several=True, recipients=(both[0],))])
    changed = {**aws.item(), "status": "bounced"}  # as if the whole had stayed
    aws.put(LEDGER, **changed)
    assert changed["recipients"] != snapshot["recipients"]
    assert ledger.reopen(KEY, snapshot) is None
    assert ledger.reopen(KEY, changed) == 2
