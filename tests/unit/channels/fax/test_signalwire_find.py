"""The look-up of faxes at SignalWire after a lost response. The pages of its lists are those of Twilio."""

from typing import Any

import pytest

from mailroom.errors import OutcomeUnknown
from tests.support.unit.scripted_server import Answer, scripted
from tests.support.unit.shared import NOW
from tests.unit.channels.fax.test_signalwire import FAXES, REQUEST, adapter


def listed(sid: str, created: str = "2026-11-21T09:00:00Z", **changes: Any) -> dict[str, Any]:
    fax = {"to": REQUEST.to, "from": REQUEST.sender, "direction": "outbound"}
    return {"sid": sid, **fax, "date_created": created, **changes}


def page(*faxes: dict[str, Any], following: str | None = None) -> Answer:
    return Answer(200, {"faxes": list(faxes), "next_page_uri": following})


def ids_in(*pages: Answer, since: float = NOW) -> list[str]:
    with scripted(*pages) as server:
        return adapter(server.url).find(REQUEST.to, REQUEST.reference, since)


def test_a_look_up_lists_faxes_to_the_recipients_number_from_a_day_before_the_try() -> None:
    with scripted(page()) as server:
        assert adapter(server.url).find(REQUEST.to, REQUEST.reference, NOW + 0.9) == []
        (request,) = server.requests
    assert (request.method, request.path) == ("GET", FAXES)
    assert request.query == {
        "To": REQUEST.to,
        "DateCreatedAfter": "2026-11-20T09:00:00Z",
        "PageSize": "1000",
    }


def test_a_fax_created_in_the_second_of_the_try_is_found_although_dates_are_in_whole_seconds() -> None:
    earlier = listed("earlier", "2026-11-21T08:59:59Z")
    assert ids_in(page(listed("same"), earlier), since=NOW + 0.999) == ["same"]


def test_a_look_up_returns_the_oldest_fax_first_even_among_faxes_of_the_same_second() -> None:
    newest_first = [listed("3", "2026-11-21T09:00:01Z"), listed("2"), listed("1")]
    assert ids_in(page(*newest_first)) == ["1", "2", "3"]


@pytest.mark.parametrize("changes", [{"direction": "inbound"}, {"to": "+15555550101"}])
def test_a_look_up_ignores_inbound_faxes_and_faxes_to_another_number(changes: dict[str, str]) -> None:
    assert ids_in(page(listed("ours"), listed("other", **changes))) == ["ours"]


def test_a_look_up_finds_a_fax_sent_from_another_number_of_the_stage() -> None:
    assert ids_in(page(listed("ours", **{"from": "+15555550198"}))) == ["ours"]


def test_a_look_up_finds_a_listed_fax_even_if_optional_fields_are_missing() -> None:
    bare = {"sid": "bare", "date_created": "2026-11-21T09:00:00Z"}
    assert ids_in(page(bare)) == ["bare"]


@pytest.mark.parametrize(
    "answer", [Answer(500), page({"sid": "1"}), page(listed("1", "yesterday")), page(listed(""))]
)
def test_if_the_fax_list_cannot_be_read_the_outcome_stays_unknown(answer: Answer) -> None:
    with pytest.raises(OutcomeUnknown):
        ids_in(answer)
