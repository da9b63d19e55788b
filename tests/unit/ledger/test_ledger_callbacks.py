"""Results of callbacks, which the ledger keeps beside the message."""

from typing import Any

import pytest

from mailroom.aws.dynamo_values import number, string
from mailroom.ledger.claims import Claimed
from mailroom.ledger.ledger import Ledger
from tests.support.unit.fax import FAX_KEY, TOLD, entry, fax, fax_item
from tests.support.unit.shared import Aws, FakeClock
from tests.support.unit.waiting import hold

DELIVERED = {"status": string("delivered"), "code": number(200)}
REFUSED = {"status": string("failed"), "code": number(500)}


@pytest.fixture
def claim(fax_ledger: Ledger) -> Claimed:
    claim = fax_ledger.claim(fax(callback_url=TOLD))
    assert isinstance(claim, Claimed)
    return claim


def test_the_latest_result_of_each_callback_is_stored_under_the_callbacks_name(
    fax_ledger: Ledger, aws: Aws, claim: Claimed
) -> None:
    fax_ledger.note_callback(FAX_KEY, "retrying.1", REFUSED)
    fax_ledger.note_callback(FAX_KEY, "sent.2.1", REFUSED)
    fax_ledger.note_callback(FAX_KEY, "sent.2.1", DELIVERED)
    assert entry(aws)["callbacks"] == {
        "retrying.1": {"status": "failed", "code": 500},
        "sent.2.1": {"status": "delivered", "code": 200},
    }


def test_storing_the_result_of_a_callback_does_not_change_another_attribute_of_the_ledger_item(
    fax_ledger: Ledger, aws: Aws, clock: FakeClock, claim: Claimed
) -> None:
    before = entry(aws)
    clock.advance(3600)
    fax_ledger.note_callback(FAX_KEY, "sent.1", DELIVERED)
    assert {**entry(aws), "callbacks": {}} == before


def test_a_callbacks_result_is_not_stored_without_a_ledger_item_or_a_callback_url(
    fax_ledger: Ledger, aws: Aws
) -> None:
    fax_ledger.note_callback(FAX_KEY, "sent.1", DELIVERED)
    assert entry(aws) == {}
    assert isinstance(fax_ledger.claim(fax()), Claimed)
    before = entry(aws)
    fax_ledger.note_callback(FAX_KEY, "sent.1", DELIVERED)
    assert entry(aws) == before


def test_the_claim_of_the_next_attempt_keeps_the_results_of_earlier_callbacks(
    fax_ledger: Ledger, aws: Aws, claim: Claimed
) -> None:
    fax_ledger.retry_later(claim, "busy", "Fax status: busy")
    fax_ledger.note_callback(FAX_KEY, "retrying.1", DELIVERED)
    assert isinstance(fax_ledger.claim(fax(callback_url=TOLD, attempt=2)), Claimed)
    assert list(entry(aws)["callbacks"]) == ["retrying.1"]


@pytest.mark.parametrize(
    "write",
    [
        lambda ledger: ledger.refuse(fax_item(callback_url=TOLD), "invalid", "to: no"),
        lambda ledger: hold(ledger, fax(callback_url=TOLD)),
        lambda ledger: ledger.claim(fax(callback_url=TOLD)),
    ],
    ids=["refuse", "hold", "claim"],
)
def test_a_callbacks_result_can_be_stored_after_any_kind_of_first_ledger_write_of_the_message(
    fax_ledger: Ledger, aws: Aws, write: Any
) -> None:
    write(fax_ledger)
    fax_ledger.note_callback(FAX_KEY, "failed.0", DELIVERED)
    assert (entry(aws)["callback_url"], list(entry(aws)["callbacks"])) == (TOLD, ["failed.0"])
