"""How the SignalWire adapter finds what a lost answer left behind."""

from typing import Any

import pytest

from mailroom.errors import NotSent, OutcomeUnknown
from tests.support.unit.scripted_server import Answer, nobody, scripted
from tests.support.unit.shared import NOW
from tests.unit.channels.fax.test_signalwire import FAXES, REQUEST, adapter


def listed(sid: str, created: str = "2026-11-21T09:00:00Z", **more: Any) -> dict[str, Any]:
    return {
        "sid": sid,
        "to": REQUEST.to,
        "from": REQUEST.sender,
        "direction": "outbound",
        "date_created": created,
        **more,
    }


def page(*faxes: dict[str, Any], following: str | None = None) -> Answer:
    return Answer(200, {"faxes": list(faxes), "next_page_uri": following})


def found(*pages: Answer, since: float = NOW) -> list[str]:
    with scripted(*pages) as server:
        return adapter(server.url).find(REQUEST.to, REQUEST.reference, since)


def test_it_asks_by_the_number_called_and_for_a_day_more_than_it_needs() -> None:
    with scripted(page()) as server:
        assert adapter(server.url).find(REQUEST.to, REQUEST.reference, NOW + 0.9) == []
        (asked,) = server.asked
    assert (asked.method, asked.path) == ("GET", FAXES)
    assert asked.query == {
        "To": REQUEST.to,
        "DateCreatedAfter": "2026-11-20T09:00:00Z",
        "PageSize": "1000",
    }


def test_whole_seconds_never_hide_a_fax_of_the_same_second() -> None:
    earlier = listed("earlier", "2026-11-21T08:59:59Z")
    assert found(page(listed("same"), earlier), since=NOW + 0.999) == ["same"]


def test_they_come_oldest_first_also_within_a_second() -> None:
    newest_first = [
        listed("4", "2026-11-21T09:00:02Z"),
        listed("3", "2026-11-21T09:00:01Z"),
        listed("2"),
        listed("1"),
    ]
    assert found(page(*newest_first)) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    "other",
    [{"direction": "inbound"}, {"to": "+15555550101"}],
    ids=["inbound", "another receiver"],
)
def test_what_the_filter_should_have_left_out_is_left_out(other: dict[str, str]) -> None:
    assert found(page(listed("ours"), listed("other", **other))) == ["ours"]


def test_a_fax_from_another_number_of_ours_may_be_this_one() -> None:
    assert found(page(listed("ours", **{"from": "+15555550198"}))) == ["ours"]


def test_what_the_answer_leaves_out_rules_no_fax_out() -> None:
    bare = {"sid": "bare", "date_created": "2026-11-21T09:00:00Z"}
    assert found(page(bare)) == ["bare"]


def test_further_pages_are_read_from_the_same_host() -> None:
    with scripted(page(listed("2"), following=f"{FAXES}?Page=1"), page(listed("1"))) as server:
        assert adapter(server.url).find(REQUEST.to, REQUEST.reference, NOW) == ["1", "2"]
        assert server.asked[1].target == f"{FAXES}?Page=1"
        assert server.asked[1].headers["authorization"].startswith("Basic ")


def test_a_next_page_may_be_named_in_full() -> None:
    with scripted(page(listed("1"))) as server:
        server.script.insert(0, page(listed("2"), following=f"{server.url}{FAXES}?Page=1"))
        assert adapter(server.url).find(REQUEST.to, REQUEST.reference, NOW) == ["1", "2"]


@pytest.mark.parametrize("following", ["https://evil.example/Faxes", "@evil.example/Faxes", "Faxes?Page=1"])
def test_the_token_is_shown_to_no_other_host(following: str) -> None:
    with pytest.raises(OutcomeUnknown, match="another host"):
        found(page(listed("1"), following=following))


def test_a_list_without_end_is_no_answer() -> None:
    with scripted(page(listed("1"), following=f"{FAXES}?Page=1")) as server:
        with pytest.raises(OutcomeUnknown, match="more than 5 pages"):
            adapter(server.url).find(REQUEST.to, REQUEST.reference, NOW)
        assert len(server.asked) == 5


@pytest.mark.parametrize(
    "answer",
    [
        Answer(500),
        Answer(200, b"?"),
        Answer(200, {}),
        page({"sid": "1"}),
        page(listed("1", "yesterday")),
        page({"date_created": "2026-11-21T09:00:00Z"}),
    ],
)
def test_a_list_that_cannot_be_understood_does_not_say_that_there_is_none(answer: Answer) -> None:
    with pytest.raises(OutcomeUnknown):
        found(answer)


def test_no_connection_does_not_say_that_there_is_none() -> None:
    with pytest.raises(NotSent):
        adapter(nobody()).find(REQUEST.to, REQUEST.reference, NOW)
