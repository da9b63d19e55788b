"""The next attempt of a fax: its time and its content."""

from typing import Any

import pytest

from mailroom.clock import iso
from mailroom.ledger.change import LedgerChange
from mailroom.outcomes import retry_of
from tests.support.unit.fax import LINE, PDF, TOLD
from tests.support.unit.shared import NOW

TEN_MINUTES = 600
OLD = {"id": "f-1", "event_type": "fax", "status": "sending"}


def retrying(old: dict[str, Any] = OLD, **changes: Any) -> LedgerChange:
    new = {
        **old,
        "status": "retrying",
        "attempts": 1,
        "to": LINE,
        "pdf_url": PDF,
        "updatedAt": iso(NOW),
        "error": {"code": "busy", "message": "Fax status: busy"},
        **changes,
    }
    return LedgerChange(old, {name: value for name, value in new.items() if value is not ...})


def test_the_next_attempt_of_a_fax_is_built_only_from_the_ledger_item() -> None:
    assert retry_of(
        retrying(attempts=6, callback_url=TOLD, expires_at="2026-12-01T00:00:00Z"), TEN_MINUTES
    ) == {
        "fax_id": "f-1",
        "to": LINE,
        "pdf_url": PDF,
        "callback_url": TOLD,
        "expires_at": "2026-12-01T00:00:00Z",
        "attempt": 7,
        "not_before": NOW + 600,
    }


def test_the_next_attempt_of_a_fax_has_the_payload_and_sender_of_the_first_attempt() -> None:
    attributes: dict[str, Any] = {"payload_ref": "s3://b/k", "from": "+12025550101"}
    retry = retry_of(retrying(pdf_url=..., **attributes), TEN_MINUTES)
    assert retry is not None
    assert (retry["payload_ref"], retry["from"]) == ("s3://b/k", "+12025550101")
    assert not {"pdf_url", "callback_url", "expires_at", "error", "status"} & retry.keys()


def test_the_delay_of_a_retry_begins_at_the_end_of_the_last_attempt_even_if_the_stream_is_late() -> None:
    retry = retry_of(retrying(updatedAt=iso(NOW + 0.4567)), 0.3)
    assert retry is not None
    assert retry["not_before"] == NOW + 0.756


def test_a_fax_reopened_for_a_resend_is_attempted_at_once() -> None:
    old = {**OLD, "status": "failed", "attempts": 20}
    retry = retry_of(retrying(old, attempts=20, generation=1), TEN_MINUTES)
    assert retry is not None
    assert (retry["attempt"], retry["not_before"]) == (21, NOW)


def test_a_ledger_item_restored_from_a_backup_with_the_status_retrying_causes_no_attempt() -> None:
    assert retry_of(LedgerChange({}, retrying().new), TEN_MINUTES) is None


@pytest.mark.parametrize(
    ("old", "changes"),
    [
        ({**OLD, "event_type": "mail"}, {}),
        (OLD, {"status": "sent"}),
        (OLD, {"status": "failed"}),
        (OLD, {"status": "sending"}),
        ({**OLD, "status": "retrying"}, {}),
        ({**OLD, "status": "retrying", "callbacks": {}}, {"callbacks": {"retrying.1": {"status": "sent"}}}),
    ],
)
def test_a_ledger_change_that_does_not_set_a_fax_to_retrying_causes_no_attempt(
    old: dict[str, Any], changes: dict[str, Any]
) -> None:
    assert retry_of(retrying(old, **changes), TEN_MINUTES) is None
