"""POST /messages: what is taken, what is not, and that the same again is the same."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.clock import iso
from tests.support.unit.api_requests import Api
from tests.support.unit.shared import MAILBOX, NOW, Aws, FakeClock, item

Log = Callable[[], list[dict[str, Any]]]


def test_a_valid_message_is_stored_in_the_mailbox(api: Api, aws: Aws) -> None:
    answer = api.post(item())
    assert (answer.status, answer.json["result"]) == (202, "accepted")
    assert aws.item(table=MAILBOX) == item()
    assert answer.headers["location"] == answer.json["href"] == "/messages/m-1?event_type=mail"


def test_the_response_to_a_repeated_message_has_the_result_existed(api: Api, aws: Aws) -> None:
    api.post(item())
    answer = api.post(item())
    assert (answer.status, answer.json["result"]) == (200, "existed")


def test_another_message_with_an_existing_id_is_a_conflict_and_the_stored_message_stays(
    api: Api, aws: Aws
) -> None:
    api.post(item())
    answer = api.post(item(text="Something else"))
    assert (answer.status, answer.fields) == (409, ["id"])
    assert aws.item(table=MAILBOX) == item()


def test_messages_with_one_id_on_two_channels_are_two_messages(api: Api) -> None:
    api.post(item())
    fax = {"id": "m-1", "event_type": "fax", "to": "+16175551234", "pdf_url": "https://f.example/1.pdf"}
    assert api.post(fax).status == 202


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"id": ...}, "id"),
        ({"id": ""}, "id"),
        ({"id": 5}, "id"),
        ({"id": "ü" * 91}, "id"),
        ({"id": "a\nb"}, "id"),
        ({"event_type": ...}, "event_type"),
        ({"event_type": 5}, "event_type"),
        ({"event_type": "pigeon"}, "event_type"),
        ({"to": "ada@"}, "to"),
        ({"to": ["ada@example.com", "no"]}, "to[1]"),
        ({"lane": "express"}, "lane"),
        ({"send_at": "soon"}, "send_at"),
        ({"send_at": "2028-11-21T09:00:00Z"}, "send_at"),
        ({"expires_at": "2026-11-21T08:59:59Z"}, "expires_at"),
        ({"attempt": 2}, "attempt"),
        ({"campaign_start": {"campaign": "c", "run": "r", "start": 1}}, "campaign_start"),
        ({"campaign_start": "c"}, "campaign_start"),
        ({"callback_url": "https://h.example:22/"}, "callback_url"),
        ({"payload_ref": "s3://elsewhere/1"}, "payload_ref"),
        ({"headers": {"Bcc": "x"}}, "headers.Bcc"),
        ({"variable": [int("1" * 39)]}, "variable[0]"),
        ({"variable": float("1e300")}, "variable"),
    ],
)
def test_an_invalid_message_is_not_stored_and_the_error_names_its_invalid_field(
    api: Api, aws: Aws, changes: dict[str, Any], field: str
) -> None:
    answer = api.post(item(**changes))
    assert (answer.status, answer.fields) == (422, [field])
    assert answer.json["detail"].startswith(f"{field}: ")
    assert aws.dynamodb.scan(TableName=MAILBOX)["Count"] == 0


def test_a_large_message_whose_content_might_expire_before_its_send_at_is_refused(
    aws: Aws, clock: FakeClock
) -> None:
    api = Api(clock, payload_ttl_seconds=90 * 86400)
    large = item(text="x" * 500_000, send_at=iso(NOW + 76 * 86400))
    answer = api.post(large)
    assert (answer.status, answer.fields) == (422, ["send_at"])
    assert "75 days" in answer.json["detail"]
    assert api.post({**large, "send_at": iso(NOW + 74 * 86400)}).status == 202


def test_a_fax_with_not_before_is_refused(api: Api) -> None:
    fax = {"id": "f", "event_type": "fax", "to": "+16175551234", "pdf_url": "https://f.example/1.pdf"}
    assert api.post({**fax, "not_before": 5}).fields == ["not_before"]


def test_the_response_to_a_list_contains_the_result_of_each_message_in_order(api: Api) -> None:
    api.post(item(id="old"))
    answer = api.post(
        {"messages": [item(id="new"), item(id="old"), item(id="old", text="No"), item(to="x"), 5]}
    )
    assert answer.status == 202
    counts = {name: answer.json[name] for name in ("accepted", "existed", "refused", "failed")}
    assert counts == {"accepted": 1, "existed": 1, "refused": 3, "failed": 0}
    results = [(each["result"], each.get("field")) for each in answer.json["messages"]]
    assert results == [
        ("accepted", None),
        ("existed", None),
        ("conflict", "id"),
        ("refused", "to"),
        ("refused", "item"),
    ]


def test_a_list_without_a_valid_message_is_refused_with_the_invalid_field_of_each_message(api: Api) -> None:
    answer = api.post({"messages": [item(to="x"), item(id=...), "no"]})
    assert answer.status == 422
    assert answer.fields == ["messages[0].to", "messages[1].id", "messages[2]"]
    assert [each["result"] for each in answer.json["messages"]] == ["refused"] * 3


def test_a_list_whose_ids_all_belong_to_other_messages_is_a_conflict(api: Api) -> None:
    api.post(item())
    assert api.post({"messages": [item(text="No")]}).status == 409


def test_the_first_of_several_messages_with_one_id_in_a_list_is_stored(api: Api, aws: Aws) -> None:
    answer = api.post({"messages": [item(text="first"), item(text="second"), item(text="first")]})
    assert [each["result"] for each in answer.json["messages"]] == ["accepted", "conflict", "existed"]
    assert aws.item(table=MAILBOX)["text"] == "first"


def test_a_template_may_have_a_variable_named_messages(api: Api, aws: Aws) -> None:
    assert api.post(item(messages=["a", "b"])).status == 202
    assert aws.item(table=MAILBOX)["messages"] == ["a", "b"]


def test_a_list_of_a_thousand_messages_is_accepted_and_a_longer_list_is_refused(api: Api, aws: Aws) -> None:
    messages = [item(id=f"m-{at}") for at in range(1001)]
    refused = api.post({"messages": messages})
    assert (refused.status, refused.fields) == (422, ["messages"])
    assert "1,000" in refused.json["detail"]
    answer = api.post({"messages": messages[:-1]})
    assert answer.json["accepted"] == 1000
    assert [each["id"] for each in answer.json["messages"]] == [f"m-{at}" for at in range(1000)]
    assert aws.dynamodb.scan(TableName=MAILBOX, Select="COUNT")["Count"] == 1000


def test_numbers_of_a_posted_message_keep_their_digits(api: Api, aws: Aws) -> None:
    body = json.dumps(item()).replace('"Hi"', '"Hi", "price": 1234567890.12345678901234567890, "n": 0.1')
    assert api.post(body).status == 202
    stored = aws.dynamodb.get_item(TableName=MAILBOX, Key={"id": {"S": "m-1"}, "event_type": {"S": "mail"}})[
        "Item"
    ]
    assert stored["price"]["N"].rstrip("0") == "1234567890.1234567890123456789"
    assert stored["n"] == {"N": "0.1"}


def test_an_item_gets_the_ttl_of_the_mailbox_unless_it_has_its_own_ttl(aws: Aws, clock: FakeClock) -> None:
    api = Api(clock, mailbox_ttl_seconds=86400)
    api.post(item())
    assert aws.item(table=MAILBOX)["ttl"] == int(NOW) + 86400
    clock.advance(3600)
    assert api.post(item()).status == 200  # the ttl is ours and no part of the message
    api.post(item(id="own", ttl=int(NOW) + 5))
    assert aws.item("own", table=MAILBOX)["ttl"] == int(NOW) + 5


def test_a_refused_message_is_logged_with_its_invalid_field_but_without_an_invalid_id(
    api: Api, log: Log
) -> None:
    api.post({"messages": [item(to="vincent@"), item(id="x" * 200), item(id="fine")]})
    lines = [
        {name: line.get(name) for name in ("message", "id", "event_type", "result", "field")}
        for line in log()
    ]
    assert lines == [
        {"message": "not accepted", "id": "m-1", "event_type": "mail", "result": "refused", "field": "to"},
        {"message": "not accepted", "id": None, "event_type": "mail", "result": "refused", "field": "id"},
    ]


def test_accepted_existing_and_refused_messages_are_counted(
    api: Api, counted: Callable[[], dict[str, float]]
) -> None:
    api.post(item(id="old"))
    api.post(
        {"messages": [item(id="a"), item(id="b"), item(id="old"), item(to="x"), item(id="old", text="")]}
    )
    assert counted() == {"ApiAccepted": 3, "ApiExisted": 1, "ApiRefused": 2}
