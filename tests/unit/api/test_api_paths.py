"""Ids in paths and queries: whatever one holds, its message is found by the `href` that was given for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailroom.api.requests import href_of, route_of
from mailroom.message.address import has_control
from tests.support.unit.api_requests import Api, api_event
from tests.support.unit.shared import MAILBOX, Aws, item

AWKWARD = [
    "spring-sale#2026-11-18T13:00Z#17",
    "a b",
    "a+b",
    "a,b",
    "a/b",
    "/",
    "a/cancel",
    "cancel",
    "a?b=c",
    "a&b=c",
    "a;b",
    "100%",
    "a%41",
    "a%2541",
    "a\\b",
    "`\"'<>{}|^~*",
    ".",
    "..",
    "ünïcødé 📮",
    "日本",
    "x" * 180,
]


@pytest.mark.parametrize("id_", AWKWARD)
def test_a_message_with_any_id_is_found_by_its_href(api: Api, aws: Aws, id_: str) -> None:
    href = api.post(item(id=id_)).json["href"]
    assert api.get(href).json["id"] == id_


@pytest.mark.parametrize("id_", [each for each in AWKWARD if "/" not in each and "?" not in each])
def test_a_message_is_found_by_a_path_that_was_not_decoded(api: Api, aws: Aws, id_: str) -> None:
    aws.put(MAILBOX, **item(id=id_))
    assert api.get(href_of(id_, "mail"), decoded=False).json["id"] == id_


@pytest.mark.parametrize("id_", AWKWARD)
def test_a_message_with_any_id_can_be_cancelled_by_its_href(api: Api, id_: str) -> None:
    href = api.post(item(id=id_, send_at="2026-12-01T00:00:00Z")).json["href"]
    path, _, query = href.partition("?")
    url = f"{path}/cancel?{query}"  # /messages/cancel?id=…, in which the id is in the query
    assert api.cancel(url).json == {**api.get(href).json, "status": "cancelled"}


def test_a_message_whose_id_has_a_slash_is_found_by_its_path(api: Api, aws: Aws) -> None:
    aws.put(MAILBOX, **item(id="a/b"))
    assert api.get("/messages/a%2Fb").json["id"] == "a/b"
    assert api.get("/messages/a/b").json["id"] == "a/b"


@given(st.text(min_size=1, max_size=60).filter(lambda text: not has_control(text)))
def test_the_id_in_an_href_is_unchanged_after_the_http_api_has_decoded_the_href(text: str) -> None:
    made = api_event("GET", href_of(text, "mail"))
    if "id" in made["queryStringParameters"]:
        assert made["queryStringParameters"]["id"] == text
    else:
        assert made["rawPath"].count("/") == 2
        assert route_of(made) == ("GET /messages/{id}", text)
