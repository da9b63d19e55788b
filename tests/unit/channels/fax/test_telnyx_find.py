"""The look-up of faxes at Telnyx after a lost response."""

from typing import Any

import pytest

from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import Evidence, NotFound, Sent, Unknowable
from tests.support.unit.scripted_server import Answer, scripted
from tests.support.unit.shared import NOW
from tests.unit.channels.fax.test_telnyx import REQUEST, STATE, telnyx_at


def listed_fax(fax_id: str, created: str = "2026-11-21T09:00:00Z", **changes: Any) -> dict[str, Any]:
    fax = {"id": fax_id, "created_at": created, "direction": "outbound"}
    return {**fax, "to": REQUEST.to, "client_state": STATE, **changes}


def fax_page(*faxes: dict[str, Any], pages: int | None = 1) -> Answer:
    return Answer(200, {"data": list(faxes), "meta": {"total_pages": pages}})


def evidence_at_telnyx(*pages: Answer, since: float = NOW, other_ids: tuple[str, ...] = ()) -> Evidence:
    with scripted(*pages) as server:
        return telnyx_at(server.url).find(REQUEST.to, REQUEST.reference, since, other_ids)


def test_a_look_up_at_telnyx_reads_one_page_without_the_number_if_the_list_by_number_is_empty() -> None:
    with scripted(fax_page(pages=9)) as server:
        server.script.insert(0, fax_page())
        assert telnyx_at(server.url).find(REQUEST.to, REQUEST.reference, NOW + 0.9, ()) == NotFound()
        first, second = server.requests
    assert (first.method, first.path) == ("GET", "/v2/faxes")
    assert first.query == {
        "filter[created_at][gte]": "2026-11-21T08:59:59Z",
        "filter[to][eq]": REQUEST.to,
        "filter[direction][eq]": "outbound",
        "page[size]": "100",
        "page[number]": "1",
    }
    assert second.query == {name: value for name, value in first.query.items() if name != "filter[to][eq]"}


def test_a_look_up_at_telnyx_finds_only_faxes_with_the_attempts_reference() -> None:
    other_faxes = [listed_fax("other", client_state="YW5vdGhlcg=="), listed_fax("bare", client_state=None)]
    assert evidence_at_telnyx(fax_page(listed_fax("ours"), *other_faxes)) == Sent("ours")
    assert evidence_at_telnyx(fax_page(other_faxes[0])) == NotFound()
    assert evidence_at_telnyx(fax_page(*other_faxes), other_ids=("bare",)) == NotFound()


@pytest.mark.parametrize("state", [None, "", "XXXXXXXX", STATE[:4], STATE[4:], f"{STATE[:4]}****", 7])
def test_a_fax_that_telnyx_lists_without_its_whole_reference_proves_nothing_about_the_outcome(
    state: object,
) -> None:
    assert evidence_at_telnyx(fax_page(listed_fax("perhaps", client_state=state))) == Unknowable()
    assert (
        evidence_at_telnyx(fax_page(listed_fax("perhaps", client_state=state, to="+15555550101")))
        == NotFound()
    )
    assert evidence_at_telnyx(
        fax_page(listed_fax("perhaps", client_state=state), listed_fax("ours"))
    ) == Sent("ours")


def test_a_fax_at_telnyx_whose_number_is_masked_is_found_by_its_reference() -> None:
    assert evidence_at_telnyx(fax_page(), fax_page(listed_fax("ours", to="+1555555XXXX"))) == Sent("ours")


def test_an_empty_list_by_number_proves_nothing_about_the_outcome_if_telnyx_masks_numbers() -> None:
    other = listed_fax("other", to="+1555555XXXX", client_state="YW5vdGhlcg==")
    assert evidence_at_telnyx(fax_page(), fax_page(other)) == Unknowable()
    assert evidence_at_telnyx(fax_page(), fax_page(other), other_ids=("other",)) == Unknowable()


def test_a_fax_created_in_the_second_of_the_try_is_found_although_the_filter_is_in_whole_seconds() -> None:
    earlier = listed_fax("earlier", "2026-11-21T08:59:59.999Z")
    assert evidence_at_telnyx(fax_page(listed_fax("same"), earlier), since=NOW + 0.999) == Sent("same")


def test_several_faxes_with_the_reference_prove_nothing_unless_all_but_one_are_of_other_messages() -> None:
    faxes = fax_page(listed_fax("3"), listed_fax("2"), listed_fax("1"))
    assert evidence_at_telnyx(faxes) == Unknowable()
    assert evidence_at_telnyx(faxes, other_ids=("3", "1")) == Sent("2")


def test_a_look_up_reads_all_pages_of_the_fax_list() -> None:
    with scripted(fax_page(listed_fax("2"), pages=2), fax_page(listed_fax("1"), pages=2)) as server:
        assert telnyx_at(server.url).find(REQUEST.to, REQUEST.reference, NOW, ("2",)) == Sent("1")
        assert [request.query["page[number]"] for request in server.requests] == ["1", "2"]


def test_if_the_page_count_is_missing_a_look_up_reads_until_an_empty_page() -> None:
    assert evidence_at_telnyx(fax_page(listed_fax("1"), pages=None), Answer(200, {"data": []})) == Sent("1")


def test_if_the_fax_list_has_too_many_pages_the_outcome_stays_unknown() -> None:
    with scripted(fax_page(listed_fax("1"), pages=99)) as server:
        with pytest.raises(OutcomeUnknown, match="more than 5 pages"):
            telnyx_at(server.url).find(REQUEST.to, REQUEST.reference, NOW, ())
        assert len(server.requests) == 5


@pytest.mark.parametrize(
    "answer",
    [
        fax_page(listed_fax("1", "yesterday")),
        fax_page(listed_fax("1", "2026-11-21")),
        fax_page(listed_fax("")),
    ],
)
def test_if_the_fax_list_has_an_invalid_entry_the_outcome_stays_unknown(answer: Answer) -> None:
    with pytest.raises(OutcomeUnknown):
        evidence_at_telnyx(answer)
