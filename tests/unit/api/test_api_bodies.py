"""The bodies and types of requests: what is read, and what is said to what cannot be."""

import json
from http import HTTPStatus

import pytest

from mailroom.api.requests import MAX_BODY_BYTES
from tests.support.unit.api_requests import Api, api_event
from tests.support.unit.shared import item


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/x.y+json"]
)
def test_every_media_type_of_json_is_accepted(api: Api, kind: str) -> None:
    assert api.post(item(), **{"Content-Type": kind}).status == HTTPStatus.ACCEPTED


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_a_media_type_other_than_json_is_refused_and_the_response_names_json(api: Api, kind: str) -> None:
    answer = api.post(item(), **{"Content-Type": kind})
    assert (answer.status, answer.fields) == (HTTPStatus.UNSUPPORTED_MEDIA_TYPE, ["Content-Type"])
    assert "application/json" in answer.json["detail"]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "null",
        "5",
        '"text"',
        "[]",
        json.dumps([item()]),
        '{"id": NaN}',
        '{"id": "\\ud800"}',
        "[" * 100_000,
    ],
)
def test_a_body_that_is_not_a_json_object_is_a_bad_request(api: Api, body: str) -> None:
    assert api.post(body).status == HTTPStatus.BAD_REQUEST


def test_a_body_nested_too_deeply_is_refused(api: Api) -> None:
    # Python 3.14 parses such a body, and the limit of levels refuses it. Earlier versions cannot parse it.
    answer = api.post('{"a":' * 5000 + "1" + "}" * 5000)
    assert answer.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


def test_a_request_body_is_accepted_in_utf_8_and_refused_in_latin_1(api: Api) -> None:
    assert api.post(json.dumps(item(text="ü"), ensure_ascii=False).encode()).status == HTTPStatus.ACCEPTED
    assert api.post(json.dumps(item(text="ü"), ensure_ascii=False).encode("latin-1")).status == 400


def test_a_missing_body_is_a_bad_request(api: Api) -> None:
    made = api_event("POST", "/messages", headers={"Content-Type": "application/json"})
    assert api.ask(made).status == HTTPStatus.BAD_REQUEST


def test_a_body_that_is_too_large_is_refused_with_the_limit(api: Api) -> None:
    answer = api.post(" " * (MAX_BODY_BYTES + 1))
    assert answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert str(MAX_BODY_BYTES) in answer.json["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "id"),
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": {"0": {}}}, "messages"),
        ({"messages": [item()], "lane": "bulk"}, "lane"),
    ],
)
def test_a_body_that_is_neither_a_message_nor_a_list_of_messages_is_refused_with_the_invalid_field(
    api: Api, body: object, field: str
) -> None:
    answer = api.post(body)
    assert (answer.status, answer.fields) == (HTTPStatus.UNPROCESSABLE_ENTITY, [field])


def test_a_message_with_values_nested_too_deeply_is_refused_and_other_messages_are_accepted(api: Api) -> None:
    deep = '{"messages": [%s, {"id": "d", "event_type": "mail", "to": "a@b.example", "v": %s}]}'
    for levels in (200, 600, 900):
        body = deep % (json.dumps(item(id=f"m-{levels}")), "[" * levels + "]" * levels)
        answer = api.post(body)
        assert [each["result"] for each in answer.json["messages"]] == ["accepted", "refused"]
        assert "too many levels" in answer.json["messages"][1]["problem"]


def test_the_response_quotes_a_long_invalid_value_only_in_part(api: Api) -> None:
    name = "n" * 100_000
    answer = api.post(item(attachments=[{"ref": "s3://b/k", name: 1}], id="x" * 100_000))
    assert len(answer.text) < 2000
    answer = api.post(item(attachments=[{"ref": "s3://b/k", name: 1}]))
    assert answer.status == HTTPStatus.UNPROCESSABLE_ENTITY
    assert len(answer.text) < 3000
