"""What occupies a line: found by its number, whoever's it is and whatever came of it."""

from collections.abc import Callable

import pytest

from mailroom.ledger.claims import Checkpoint, Claimed
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Key
from tests.support.unit.fax import FAX_KEY, LINE, OTHER_LINE, fax
from tests.support.unit.shared import NOW_MS, Aws, FakeClock


def claimed(ledger: Ledger, id_: str = "f-1", attempt: int = 1) -> Claimed:
    claim = ledger.claim(fax(id=id_, attempt=attempt))
    assert isinstance(claim, Claimed), claim
    return claim


def test_a_checkpoint_says_who_has_it_since_when_and_on_which_line(
    fax_ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claim = claimed(fax_ledger)
    clock.advance(3)
    fax_ledger.checkpoint(claim, "telnyx", "p-1", LINE)
    found = aws.item("f-1", "fax")
    assert (found["provider"], found["provider_id"], found["provider_ids"]) == ("telnyx", "p-1", ["p-1"])
    assert (found["line"], found["submittedAt"], found["status"]) == (LINE, NOW_MS + 3000, "sending")
    fax_ledger.hand_back(claim)
    assert claimed(fax_ledger).checkpoint == Checkpoint("p-1", "telnyx", NOW_MS + 3000)


def test_what_occupies_no_line_is_on_none(fax_ledger: Ledger, aws: Aws) -> None:
    fax_ledger.checkpoint(claimed(fax_ledger), "telnyx", "p-1")
    assert "line" not in aws.item("f-1", "fax")
    assert fax_ledger.ids_on_line(LINE, 0) == set()


def test_all_attempts_of_all_faxes_are_found_by_their_line(fax_ledger: Ledger, clock: FakeClock) -> None:
    for attempt in (1, 2):
        claim = claimed(fax_ledger, attempt=attempt)
        fax_ledger.checkpoint(claim, "telnyx", f"p-{attempt}", LINE)
        fax_ledger.retry_later(claim, "busy", "Fax status: busy")
        clock.advance(600)
    fax_ledger.checkpoint(claimed(fax_ledger, "f-2"), "telnyx", "p-3", LINE)
    fax_ledger.checkpoint(claimed(fax_ledger, "f-3"), "telnyx", "p-4", OTHER_LINE)
    assert fax_ledger.ids_on_line(LINE, 0) == {"p-1", "p-2", "p-3"}
    assert fax_ledger.ids_on_line(OTHER_LINE, 0) == {"p-4"}
    assert fax_ledger.ids_on_line("+12025550199", 0) == set()


@pytest.mark.parametrize(
    ("since", "found"), [(NOW_MS, {"p-1"}), (NOW_MS + 1, set()), (NOW_MS - 0.5, {"p-1"})]
)
def test_what_was_submitted_before_that_time_is_not_among_them(
    fax_ledger: Ledger, since: float, found: set[str]
) -> None:
    fax_ledger.checkpoint(claimed(fax_ledger), "telnyx", "p-1", LINE)
    assert fax_ledger.ids_on_line(LINE, since) == found


def test_a_fax_is_on_its_line_whatever_came_of_it(fax_ledger: Ledger) -> None:
    ends: tuple[Callable[..., None], ...] = (fax_ledger.complete, fax_ledger.fail)
    for at, end in enumerate(ends):
        claim = claimed(fax_ledger, f"f-{at}")
        fax_ledger.checkpoint(claim, "telnyx", f"p-{at}", LINE)
        end(claim, "telnyx", f"p-{at}")
    fax_ledger.reopen(Key("f-1", "fax"), {"status": "failed", "attempts": 1})
    assert fax_ledger.ids_on_line(LINE, 0) == {"p-0", "p-1"}


def test_more_faxes_than_one_answer_holds_are_all_found(
    fax_ledger: Ledger, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("tests.support.dynamodb.client.PAGE_BYTES", "moto.dynamodb.models.table.RESULT_SIZE_LIMIT"):
        monkeypatch.setattr(limit, 400)
    for at in range(12):
        fax_ledger.checkpoint(claimed(fax_ledger, f"f-{at}"), "telnyx", f"p-{at}", LINE)
    assert fax_ledger.ids_on_line(LINE, 0) == {f"p-{at}" for at in range(12)}


def test_a_claim_keeps_what_a_retry_is_built_from(fax_ledger: Ledger, aws: Aws) -> None:
    assert isinstance(fax_ledger.claim(fax(**{"from": "+12025550101"})), Claimed)
    found = aws.item("f-1", "fax")
    assert (found["to"], found["pdf_url"], found["from"]) == (
        LINE,
        "https://files.example/f-1.pdf",
        "+12025550101",
    )
    assert "callbacks" not in found
    assert FAX_KEY.id == found["id"]
