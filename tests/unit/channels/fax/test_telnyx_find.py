"""The look-up of faxes at Telnyx after a lost response."""

from typing import Any

import pytest

from mailroom.errors import NotSent, OutcomeUnknown
from tests.support.unit.scripted_server import Answer, closed, scripted
from tests.support.unit.shared import NOW
from tests.unit.channels.fax.test_telnyx import REQUEST, STATE, adapter


def listed(fax_id: str, created: str = "2026-11-21T09:00:00Z", state: str | None = STATE) -> dict[str, Any]:
    return {"id": fax_id, "created_at": created, "client_state": state}


def page(*faxes: dict[str, Any], pages: int | None = 1) -> Answer:
    return Answer(200, {"data": list(faxes), "meta": {"total_pages": pages}})


def ids_in(*pages: Answer, since: float = NOW) -> list[str]:
    with scripted(*pages) as server:
        return adapter(server.url).find(REQUEST.to, REQUEST.reference, since)


def test_a_look_up_filters_telnyxs_faxes_by_number_direction_and_date() -> None:
    with scripted(page()) as server:
        assert adapter(server.url).find(REQUEST.to, REQUEST.reference, NOW + 0.9) == []
        (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/v2/faxes")
    assert request.query == {
        "filter[created_at][gte]": "2026-11-21T08:59:59Z",
        "filter[to][eq]": REQUEST.to,
        "filter[direction][eq]": "outbound",
        "page[size]": "100",
        "page[number]": "1",
    }


def test_a_look_up_at_telnyx_finds_only_faxes_with_the_attempts_reference() -> None:
    other_faxes = [listed("other", state="b3RoZXI="), listed("bare", state=None)]
    assert ids_in(page(listed("ours"), *other_faxes)) == ["ours"]


def test_a_fax_created_in_the_second_of_the_try_is_found_although_the_filter_is_in_whole_seconds() -> None:
    earlier = listed("earlier", "2026-11-21T08:59:59.999Z")
    assert ids_in(page(listed("same"), earlier), since=NOW + 0.999) == ["same"]


def test_a_look_up_returns_the_oldest_fax_first_even_among_faxes_of_the_same_second() -> None:
    newest_first = [listed("3", "2026-11-21T09:00:01.5Z"), listed("2"), listed("1")]
    assert ids_in(page(*newest_first)) == ["1", "2", "3"]


def test_a_look_up_reads_all_pages_of_the_fax_list() -> None:
    with scripted(page(listed("2"), pages=2), page(listed("1"), pages=2)) as server:
        assert adapter(server.url).find(REQUEST.to, REQUEST.reference, NOW) == ["1", "2"]
        assert [request.query["page[number]"] for request in server.requests] == ["1", "2"]


def test_if_the_page_count_is_missing_a_look_up_reads_until_an_empty_page() -> None:
    assert ids_in(page(listed("1"), pages=None), Answer(200, {"data": []})) == ["1"]


def test_if_the_fax_list_has_too_many_pages_the_outcome_stays_unknown() -> None:
    with scripted(page(listed("1"), pages=99)) as server:
        with pytest.raises(OutcomeUnknown, match="more than 5 pages"):
            adapter(server.url).find(REQUEST.to, REQUEST.reference, NOW)
        assert len(server.requests) == 5


@pytest.mark.parametrize(
    "answer",
    [Answer(500), Answer(200, b"?"), Answer(200, {}), page(listed("1", "yesterday")), page(listed(""))],
)
def test_if_the_fax_list_cannot_be_read_the_outcome_stays_unknown(answer: Answer) -> None:
    with pytest.raises(OutcomeUnknown):
        ids_in(answer)


def test_without_a_connection_for_the_look_up_the_outcome_stays_unknown() -> None:
    with pytest.raises(NotSent):
        adapter(closed()).find(REQUEST.to, REQUEST.reference, NOW)
