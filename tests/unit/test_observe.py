"""A provider's events: whatever their order and number, the ledger ends with the same truth."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailroom.claim import Completed
from mailroom.dynamo import number, string
from mailroom.ledger import Ledger
from mailroom.message import Key
from mailroom.status import Status
from tests.unit.support import KEY, LEASE, NOW_MS, Aws, FakeClock, claimed, mail

EVENTS: list[Status] = ["sent", "undelivered", "delivered", "bounced", "complained"]
_ids = itertools.count()


def test_an_event_completes_a_message_whose_worker_crashed(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claimed(ledger)
    clock.advance(3)
    assert ledger.observe(KEY, "sent", accepted=True, provider_id="p-1")
    found = aws.item()
    assert (found["status"], found["provider_id"], found["completedAt"]) == ("sent", "p-1", NOW_MS + 3000)
    clock.advance(LEASE)
    assert ledger.claim(mail()) == Completed()


def test_an_event_that_proves_no_acceptance_does_not_complete(ledger: Ledger, aws: Aws) -> None:
    claimed(ledger)
    assert ledger.observe(KEY, "sent", accepted=False)
    assert "completedAt" not in aws.item()


def test_an_event_without_an_item_is_foreign_and_leaves_none(ledger: Ledger, aws: Aws) -> None:
    assert not ledger.observe(KEY, "delivered", accepted=True)
    assert aws.item() == {}


def test_facts_are_kept_where_they_are_new(ledger: Ledger, aws: Aws) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    ledger.observe(KEY, "delivered", accepted=True, facts={"deliveredAt": number(7)})
    ledger.observe(
        KEY, "bounced", accepted=True, facts={"deliveredAt": number(9), "bounce_type": string("Permanent")}
    )
    assert (aws.item()["deliveredAt"], aws.item()["bounce_type"]) == (7, "Permanent")


def test_a_late_event_leaves_its_facts_and_not_its_status(ledger: Ledger, aws: Aws) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    ledger.observe(KEY, "bounced", accepted=True)
    assert ledger.observe(KEY, "delivered", accepted=True, facts={"deliveredAt": number(7)})
    assert (aws.item()["status"], aws.item()["deliveredAt"]) == ("bounced", 7)


def test_the_first_providers_id_stays(ledger: Ledger, aws: Aws) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    ledger.observe(KEY, "delivered", accepted=True, provider_id="p-2")
    assert aws.item()["provider_id"] == "p-1"


def test_an_event_that_moves_the_status_is_a_line_of_history_and_a_repeat_is_not(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    for _ in range(3):
        ledger.observe(KEY, "delivered", accepted=True)
    assert [line["status"] for line in aws.item()["history"]] == ["sent", "delivered"]


def test_a_message_held_as_failed_leaves_the_index_of_failures_when_its_delivery_is_proved(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.fail(claimed(ledger), "outcome_unknown", "ask the provider")
    ledger.observe(KEY, "delivered", accepted=True, provider_id="p-1")
    assert aws.item()["status"] == "delivered"
    assert "failed_on" not in aws.item()


@pytest.mark.parametrize("status", ["bounced", "complained"])
def test_a_bounce_or_a_complaint_may_follow_a_delivery(ledger: Ledger, aws: Aws, status: Status) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    ledger.observe(KEY, "delivered", accepted=True)
    ledger.observe(KEY, status, accepted=True)
    assert aws.item()["status"] == status


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), events=st.lists(st.sampled_from(EVENTS), min_size=1, max_size=5))
def test_any_order_and_number_of_events_ends_the_same(
    aws: Aws, ledger: Ledger, data: st.DataObject, events: list[Status]
) -> None:
    shuffled = data.draw(st.permutations(events + data.draw(st.lists(st.sampled_from(events), max_size=4))))
    answer_at = data.draw(st.integers(0, len(shuffled)))  # where the worker's own record comes among them
    id_ = f"any-{next(_ids)}"
    claim = claimed(ledger, mail(id_))
    for at, event in enumerate([*shuffled, None]):
        if at == answer_at:
            ledger.complete(claim, "ses", "p-1")
        if event is not None:
            assert ledger.observe(Key(id_, "mail"), event, accepted=True, provider_id="p-1")
    found = aws.item(id_)
    assert found["status"] == max(["sent", *events], key=[*EVENTS].index)
    assert found["provider_id"] == "p-1"
    assert "completedAt" in found
    lines = [EVENTS.index(line["status"]) for line in found["history"]]
    assert lines == sorted(set(lines))
