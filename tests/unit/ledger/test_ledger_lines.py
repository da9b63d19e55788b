"""Messages that occupy a line (a number), found by the line and the time of their submit."""

from collections.abc import Callable

import pytest

from mailroom.ledger.claims import Checkpoint
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Key
from tests.support.unit.fax import LINE, OTHER_LINE, PDF, fax
from tests.support.unit.shared import NOW_MS, Aws, FakeClock, claimed


def test_a_checkpoint_of_a_fax_stores_the_provider_the_provider_id_the_submit_time_and_the_number(
    fax_ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claim = claimed(fax_ledger, fax())
    clock.advance(3)
    fax_ledger.checkpoint(claim, "telnyx", "p-1", LINE)
    item = aws.item("f-1", "fax")
    assert (item["provider"], item["provider_id"], item["provider_ids"]) == ("telnyx", "p-1", ["p-1"])
    assert (item["line"], item["submittedAt"], item["status"]) == (LINE, NOW_MS + 3000, "sending")
    fax_ledger.hand_back(claim)
    assert claimed(fax_ledger, fax()).checkpoint == Checkpoint("p-1", "telnyx", NOW_MS + 3000)


def test_all_attempts_of_all_faxes_to_a_number_are_found_by_the_number(
    fax_ledger: Ledger, clock: FakeClock
) -> None:
    for attempt in (1, 2):
        claim = claimed(fax_ledger, fax(attempt=attempt))
        fax_ledger.checkpoint(claim, "telnyx", f"p-{attempt}", LINE)
        fax_ledger.retry_later(claim, "busy", "Fax status: busy")
        clock.advance(600)
    fax_ledger.checkpoint(claimed(fax_ledger, fax(id="f-2")), "telnyx", "p-3", LINE)
    fax_ledger.checkpoint(claimed(fax_ledger, fax(id="f-3")), "telnyx", "p-4", OTHER_LINE)
    assert fax_ledger.ids_on_line(LINE, 0) == {"p-1", "p-2", "p-3"}
    assert fax_ledger.ids_on_line(OTHER_LINE, 0) == {"p-4"}
    assert fax_ledger.ids_on_line("+12025550199", 0) == set()


@pytest.mark.parametrize(("since", "ids"), [(NOW_MS, {"p-1"}), (NOW_MS + 1, set()), (NOW_MS - 0.5, {"p-1"})])
def test_a_search_by_number_finds_only_faxes_submitted_since_the_requested_time(
    fax_ledger: Ledger, since: float, ids: set[str]
) -> None:
    fax_ledger.checkpoint(claimed(fax_ledger, fax()), "telnyx", "p-1", LINE)
    assert fax_ledger.ids_on_line(LINE, since) == ids


def test_a_fax_is_found_by_its_number_after_any_outcome(fax_ledger: Ledger) -> None:
    ends: tuple[Callable[..., None], ...] = (fax_ledger.complete, fax_ledger.fail)
    for at, end in enumerate(ends):
        claim = claimed(fax_ledger, fax(id=f"f-{at}"))
        fax_ledger.checkpoint(claim, "telnyx", f"p-{at}", LINE)
        end(claim, "telnyx", f"p-{at}")
    fax_ledger.reopen(Key("f-1", "fax"), {"status": "failed", "attempts": 1})
    assert fax_ledger.ids_on_line(LINE, 0) == {"p-0", "p-1"}


def test_faxes_to_a_number_are_all_found_on_several_pages_of_query_results(
    fax_ledger: Ledger, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("tests.support.dynamodb.client.PAGE_BYTES", "moto.dynamodb.models.table.RESULT_SIZE_LIMIT"):
        monkeypatch.setattr(limit, 400)
    for at in range(12):
        fax_ledger.checkpoint(claimed(fax_ledger, fax(id=f"f-{at}")), "telnyx", f"p-{at}", LINE)
    assert fax_ledger.ids_on_line(LINE, 0) == {f"p-{at}" for at in range(12)}


def test_a_claim_stores_the_attributes_of_a_fax_that_a_retry_needs(fax_ledger: Ledger, aws: Aws) -> None:
    claimed(fax_ledger, fax(**{"from": "+12025550101"}))
    item = aws.item("f-1", "fax")
    assert (item["to"], item["pdf_url"], item["from"]) == (LINE, PDF, "+12025550101")
    assert "callbacks" not in item
