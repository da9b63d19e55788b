"""How the Telnyx adapter finds what a lost answer left behind."""

from typing import Any

import pytest

from mailroom.errors import NotSent, OutcomeUnknown
from tests.support.unit.scripted_server import Answer, nobody, scripted
from tests.support.unit.shared import NOW
from tests.unit.channels.fax.test_telnyx import REQUEST, STATE, adapter


def listed(fax_id: str, created: str = "2026-11-21T09:00:00Z", state: str | None = STATE) -> dict[str, Any]:
    return {"id": fax_id, "created_at": created, "client_state": state}


def page(*faxes: dict[str, Any], pages: int | None = 1) -> Answer:
    return Answer(200, {"data": list(faxes), "meta": {"total_pages": pages}})


def found(*pages: Answer, since: float = NOW) -> list[str]:
    with scripted(*pages) as server:
        return adapter(server.url).find(REQUEST.to, REQUEST.reference, since)


def test_it_asks_by_number_direction_and_date() -> None:
    with scripted(page()) as server:
        assert adapter(server.url).find(REQUEST.to, REQUEST.reference, NOW + 0.9) == []
        (asked,) = server.asked
    assert (asked.method, asked.path) == ("GET", "/v2/faxes")
    assert asked.query == {
        "filter[created_at][gte]": "2026-11-21T08:59:59Z",
        "filter[to][eq]": REQUEST.to,
        "filter[direction][eq]": "outbound",
        "page[size]": "100",
        "page[number]": "1",
    }


def test_only_what_carries_this_attempts_reference_is_found() -> None:
    others = [listed("other", state="b3RoZXI="), listed("bare", state=None)]
    assert found(page(listed("ours"), *others)) == ["ours"]


def test_whole_seconds_never_hide_a_fax_of_the_same_second() -> None:
    earlier = listed("earlier", "2026-11-21T08:59:59.999Z")
    assert found(page(listed("same"), earlier), since=NOW + 0.999) == ["same"]


def test_they_come_oldest_first_also_within_a_second() -> None:
    newest_first = [listed("3", "2026-11-21T09:00:01.5Z"), listed("2"), listed("1")]
    assert found(page(*newest_first)) == ["1", "2", "3"]


def test_further_pages_are_read_up_to_the_last() -> None:
    with scripted(page(listed("2"), pages=2), page(listed("1"), pages=2)) as server:
        assert adapter(server.url).find(REQUEST.to, REQUEST.reference, NOW) == ["1", "2"]
        assert [asked.query["page[number]"] for asked in server.asked] == ["1", "2"]


def test_where_nothing_tells_how_many_there_are_an_empty_page_is_the_last() -> None:
    assert found(page(listed("1"), pages=None), Answer(200, {"data": []})) == ["1"]


def test_a_list_without_end_is_no_answer() -> None:
    with scripted(page(listed("1"), pages=99)) as server:
        with pytest.raises(OutcomeUnknown, match="more than 5 pages"):
            adapter(server.url).find(REQUEST.to, REQUEST.reference, NOW)
        assert len(server.asked) == 5


@pytest.mark.parametrize(
    "answer",
    [Answer(500), Answer(200, b"?"), Answer(200, {}), page(listed("1", "yesterday")), page(listed(""))],
)
def test_a_list_that_cannot_be_understood_does_not_say_that_there_is_none(answer: Answer) -> None:
    with pytest.raises(OutcomeUnknown):
        found(answer)


def test_no_connection_does_not_say_that_there_is_none() -> None:
    with pytest.raises(NotSent):
        adapter(nobody()).find(REQUEST.to, REQUEST.reference, NOW)
