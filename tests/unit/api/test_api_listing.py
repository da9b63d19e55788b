"""GET /messages: somebody's messages, or the newest."""

from typing import Any
from urllib.parse import quote

import pytest

from mailroom.ledger.ledger import Ledger
from mailroom.message.message import CampaignStart
from tests.support.unit.api_requests import Api
from tests.support.unit.searching import Search
from tests.support.unit.shared import Aws, FakeClock, claimed, mail

ADA = "ada@example.com"


API = {"default_region": "US"}


def send_mails(aws: Aws, ledger: Ledger, clock: FakeClock, *ids: str, **more: Any) -> None:
    for id_ in ids:
        ledger.complete(claimed(ledger, mail(id_, **{"to": ADA, **more})), "ses", "0101")
        clock.advance(1)
    Search(aws).index()


def ids_at(api: Api, url: str) -> list[str]:
    return [each["id"] for each in api.get(url).json["messages"]]


def test_a_persons_messages_are_listed_with_links_to_their_states(
    api: Api, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    send_mails(aws, ledger, clock, "m/1")
    send_mails(aws, ledger, clock, "m-2", to="bob@example.com")
    answer = api.get(f"/messages?recipient={quote('Ada <ADA@example.com>')}")
    assert (answer.status, answer.json) == (
        200,
        {
            "messages": [
                {
                    "id": "m/1",
                    "event_type": "mail",
                    "status": "sent",
                    "put_at": "2026-11-21T09:00:00.000Z",
                    "subject": "Hello",
                    "to": ADA,
                    "updated_at": "2026-11-21T09:00:00.000Z",
                    "href": "/messages?id=m%2F1&event_type=mail",
                }
            ],
        },
    )
    assert api.get(answer.json["messages"][0]["href"]).json["id"] == "m/1"


def test_the_api_lists_messages_in_pages_from_the_newest_to_the_oldest(
    api: Api, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    send_mails(aws, ledger, clock, *(f"m-{at}" for at in range(60)))
    first = api.get("/messages").json
    assert [each["id"] for each in first["messages"]] == [f"m-{at}" for at in range(59, 9, -1)]
    assert first["looked_back_to"] == "2026-11-21T09:00:10.000Z"
    second = api.get(f"/messages?cursor={quote(first['cursor'])}").json
    assert ([each["id"] for each in second["messages"]], "cursor" in second) == (
        [f"m-{at}" for at in range(9, -1, -1)],
        False,
    )


def test_the_api_lists_only_messages_that_match_all_filters(
    api: Api, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    send_mails(aws, ledger, clock, "spring#1#ada", campaign_start=CampaignStart("spring", "1", 1))
    send_mails(aws, ledger, clock, "m-1", text=None, template="welcome")
    assert ids_at(api, "/messages?campaign=spring") == ["spring#1#ada"]
    assert ids_at(api, "/messages?template=welcome&status=sent&event_type=mail") == ["m-1"]
    assert ids_at(api, f"/messages?recipient={ADA}&status=bounced") == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("recipient=", "recipient"),
        (f"recipient={'x' * 2049}", "recipient"),
        ("cursor=7", "cursor"),
        ("status=bouncd", "status"),
        ("to=ada@example.com", "to"),
        ("limit=5", "limit"),
    ],
)
def test_an_invalid_query_parameter_is_refused_and_the_error_names_the_parameter(
    api: Api, query: str, field: str
) -> None:
    answer = api.get(f"/messages?{query}")
    assert (answer.status, answer.fields) == (422, [field])


def test_a_request_for_the_list_of_messages_gets_404_if_the_stage_has_no_search(
    aws: Aws, clock: FakeClock
) -> None:
    answer = Api(clock, search_table="").get("/messages")
    assert (answer.status, answer.json["detail"]) == (
        404,
        "this stage has no search: use the id of a message, or set search to true",
    )
