"""The look-up of faxes at SignalWire after a lost response. The pages of its lists are those of Twilio."""

from typing import Any

import pytest

from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import Evidence, NotFound, Sent, Unknowable
from tests.support.unit.scripted_server import Answer, scripted
from tests.support.unit.shared import NOW
from tests.unit.channels.fax.test_signalwire import FAXES, REQUEST, signalwire_at


def listed_fax(sid: str, created: str = "2026-11-21T09:00:00Z", **changes: Any) -> dict[str, Any]:
    fax = {"to": REQUEST.to, "from": REQUEST.sender, "direction": "outbound"}
    return {"sid": sid, **fax, "date_created": created, **changes}


def fax_page(*faxes: dict[str, Any], following: str | None = None) -> Answer:
    return Answer(200, {"faxes": list(faxes), "next_page_uri": following})


def evidence_at_signalwire(*pages: Answer, since: float = NOW, other_ids: tuple[str, ...] = ()) -> Evidence:
    with scripted(*pages) as server:
        return signalwire_at(server.url).find(REQUEST.to, REQUEST.reference, since, other_ids)


def test_a_look_up_at_signalwire_reads_one_page_without_the_number_if_the_list_by_number_is_empty() -> None:
    with scripted(fax_page(following=f"{FAXES}?Page=1")) as server:
        server.script.insert(0, fax_page())
        assert signalwire_at(server.url).find(REQUEST.to, REQUEST.reference, NOW + 0.9, ()) == NotFound()
        first, second = server.requests
    assert (first.method, first.path) == ("GET", FAXES)
    assert first.query == {
        "To": REQUEST.to,
        "DateCreatedAfter": "2026-11-20T09:00:00Z",
        "PageSize": "1000",
    }
    assert second.query == {name: value for name, value in first.query.items() if name != "To"}


def test_a_fax_created_in_the_second_of_the_try_is_found_although_dates_are_in_whole_seconds() -> None:
    earlier = listed_fax("earlier", "2026-11-21T08:59:59Z")
    assert evidence_at_signalwire(fax_page(listed_fax("same"), earlier), since=NOW + 0.999) == Sent("same")


def test_several_faxes_to_the_number_prove_nothing_unless_all_or_all_but_one_are_of_other_messages() -> None:
    faxes = fax_page(listed_fax("3"), listed_fax("2"), listed_fax("1"))
    assert evidence_at_signalwire(faxes) == Unknowable()
    assert evidence_at_signalwire(faxes, other_ids=("3", "1")) == Sent("2")
    assert evidence_at_signalwire(faxes, other_ids=("3", "2", "1")) == NotFound()


@pytest.mark.parametrize("changes", [{"direction": "inbound"}, {"to": "+15555550101"}])
def test_a_look_up_ignores_inbound_faxes_and_faxes_to_another_number(changes: dict[str, str]) -> None:
    assert evidence_at_signalwire(fax_page(listed_fax("ours"), listed_fax("other", **changes))) == Sent(
        "ours"
    )
    assert evidence_at_signalwire(fax_page(listed_fax("other", **changes))) == NotFound()


def test_a_look_up_finds_a_fax_sent_from_another_number_of_the_stage() -> None:
    assert evidence_at_signalwire(fax_page(listed_fax("ours", **{"from": "+15555550198"}))) == Sent("ours")


def test_a_look_up_finds_a_listed_fax_even_if_its_direction_is_missing() -> None:
    bare = {"sid": "bare", "to": REQUEST.to, "date_created": "2026-11-21T09:00:00Z"}
    assert evidence_at_signalwire(fax_page(bare)) == Sent("bare")


@pytest.mark.parametrize("to", [None, "", "+1555555XXXX", "+155555501**", "15555550100", "+15555550000", 7])
def test_a_fax_that_signalwire_lists_without_its_whole_number_proves_nothing_about_the_outcome(
    to: object,
) -> None:
    assert evidence_at_signalwire(fax_page(listed_fax("perhaps", to=to))) == Unknowable()
    assert evidence_at_signalwire(fax_page(), fax_page(listed_fax("perhaps", to=to))) == Unknowable()


def test_an_empty_list_by_number_proves_nothing_about_the_outcome_if_signalwire_masks_numbers() -> None:
    known = listed_fax("known", to="+1777555XXXX")
    assert evidence_at_signalwire(fax_page(), fax_page(known), other_ids=("known",)) == Unknowable()
    assert evidence_at_signalwire(fax_page(), fax_page({**known, "direction": "inbound"})) == NotFound()


@pytest.mark.parametrize(
    "answer",
    [
        fax_page({"sid": "1"}),
        fax_page(listed_fax("1", "yesterday")),
        fax_page(listed_fax("1", "2026-11-21")),
        fax_page(listed_fax("")),
    ],
)
def test_if_the_fax_list_has_an_invalid_entry_the_outcome_stays_unknown(answer: Answer) -> None:
    with pytest.raises(OutcomeUnknown):
        evidence_at_signalwire(answer)
