"""The page of preferences: what it shows, and which choices it changes."""

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.exceptions import EndpointConnectionError

from mailroom.recipients.choices import By
from mailroom.unsubscribe.page import HEADERS, PageSettings, Topic
from tests.support.unit.shared import Aws, FakeClock, before_each_call
from tests.support.unit.unsubscribing import (
    ADA,
    NEWER,
    ONE_CLICK,
    Door,
    links,
    page_token,
    posted_form,
    secrets_with_key,
    token,
    tokens,
    unsubscribe_request,
)
from tests.unit.unsubscribe.test_unsubscribe_page import Elements

Counted = Callable[[], dict[str, float]]
EVE = "eve@example.com"
PAGE = PageSettings(
    brand="Example Books",
    languages={"de": {}},
    topics={
        "news": Topic({"en": "News", "de": "Neues"}, {"en": "Once a month.", "de": "Einmal im Monat."}),
        "offers": Topic(),
        '<nasty>&"': Topic({"en": '<script>alert("x")</script>'}, {"en": "<b>"}),
    },
)


@pytest.fixture
def preferences_page(aws: Aws, clock: FakeClock) -> Door:
    return Door(aws, clock, page=PAGE)


def opened(door: Door, **changes: Any) -> str:
    answer = door.answer(unsubscribe_request(page_token(), **changes))
    assert answer["statusCode"] == 200
    return str(answer["body"])


def switches(html: str) -> dict[str, str]:
    """The state of each switch by its topic."""
    states = {"true": "on", "false": "off"}
    return {
        str(each["value"]): states[str(each["aria-checked"])] + (" fixed" if "disabled" in each else "")
        for each in Elements(html).of("button")
        if each.get("role") == "switch"
    }


ON = {"news": "on", "offers": "on", '<nasty>&"': "on"}


def outs(door: Door, recipient: str = ADA) -> dict[str, By | None]:
    """The way of each opt-out, by topic."""
    choices = door.preferences.choices(recipient).items()
    return {topic: choice.by for topic, choice in choices if choice.out}


def test_the_page_has_a_switch_with_title_and_sentence_for_each_topic_and_shows_a_part_of_the_address(
    preferences_page: Door,
) -> None:
    html = opened(preferences_page)
    assert switches(html) == ON
    for text in (">News</bdi>", "Once a month.", "a***@example.com", "Example Books", "Choose what you get"):
        assert text in html
    assert ADA not in html
    assert "Nothing but what I must get" in html


def test_the_page_is_in_the_language_of_the_reader(preferences_page: Door) -> None:
    html = opened(preferences_page, headers={"Accept-Language": "de-AT"})
    assert '<html lang="de" dir="ltr">' in html
    for text in ("Neues", "Einmal im Monat.", "Was möchten Sie bekommen?", "Nur, was ich bekommen muss"):
        assert text in html


def test_a_page_is_valid_html_whose_switches_are_described_and_names_are_escaped(
    preferences_page: Door,
) -> None:
    html = opened(preferences_page)
    elements = Elements(html)
    names = [each["id"] for _, each in elements.found if "id" in each]
    assert len(names) == len({*names})
    for each in elements.of("button"):
        if each.get("role") == "switch":
            assert {"type": "submit"}.items() <= each.items()
            assert each["aria-describedby"] in names
    assert len(elements.of("script")) == 1
    assert len(elements.of("b")) == 0
    assert elements.of("form") == [{"method": "post"}]


def test_opening_the_page_changes_nothing_and_makes_one_call(
    preferences_page: Door, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that scan mails follow every link."""
    calls: list[str] = []
    before_each_call(monkeypatch, calls.append)
    for method in ("GET", "HEAD"):
        for _ in range(5):
            assert preferences_page.status(unsubscribe_request(page_token(), method)) == 200
    assert calls == ["Query"] * 10
    assert (outs(preferences_page), counted()) == ({}, {})


def test_a_switch_of_the_page_opts_out_of_its_topic_and_in_again(
    preferences_page: Door, counted: Counted
) -> None:
    html = str(preferences_page.answer(posted_form(page_token(), {"unsubscribe": "news"}))["body"])
    assert switches(html) == {**ON, "news": "off"}
    assert '">Saved.</p>' in html
    assert outs(preferences_page) == {"news": "preferences"}
    html = str(preferences_page.answer(posted_form(page_token(), {"subscribe": "news"}))["body"])
    assert (switches(html), outs(preferences_page)) == (ON, {})
    assert counted() == {"Unsubscribed": 1, "Resubscribed": 1}


def test_the_button_that_keeps_required_mails_opts_out_of_all_topics_and_keeps_earlier_opt_outs(
    preferences_page: Door, counted: Counted
) -> None:
    preferences_page.preferences.opt_out(ADA, "offers", "one-click")
    before = preferences_page.writes()
    html = str(preferences_page.answer(posted_form(page_token(), {"nothing": "1"}))["body"])
    assert outs(preferences_page) == {
        "news": "preferences",
        "offers": "one-click",
        '<nasty>&"': "preferences",
    }
    assert preferences_page.writes() - before == 2
    assert switches(html)["offers"] == "off fixed"
    assert counted() == {"Unsubscribed": 2}


@pytest.mark.parametrize("by", ["one-click", "page", "api", "command", "console", "operator"])
def test_a_topic_that_was_switched_off_in_another_way_cannot_be_switched_on_at_the_page(
    preferences_page: Door, by: By
) -> None:
    preferences_page.preferences.opt_out(ADA, "news", by)
    html = opened(preferences_page)
    assert switches(html)["news"] == "off fixed"
    assert "Once a month. This was switched off in another way." in html
    assert preferences_page.status(posted_form(page_token(), {"subscribe": "news"})) == 200
    assert outs(preferences_page) == {"news": by}


def test_a_topic_whose_opt_out_was_repeated_by_one_click_cannot_be_switched_on_at_the_page(
    preferences_page: Door,
) -> None:
    preferences_page.answer(posted_form(page_token(), {"unsubscribe": "news"}))
    preferences_page.answer(posted_form(token(topic="news"), ONE_CLICK))
    assert switches(opened(preferences_page))["news"] == "off fixed"
    assert preferences_page.status(posted_form(page_token(), {"subscribe": "news"})) == 200
    assert outs(preferences_page) == {"news": "one-click"}


def test_a_link_opens_only_the_page_of_its_own_recipient(preferences_page: Door) -> None:
    preferences_page.answer(posted_form(page_token(EVE), {"nothing": "1"}))
    assert (outs(preferences_page), len(outs(preferences_page, EVE))) == ({}, 3)
    assert switches(opened(preferences_page)) == ON


def test_an_unsubscribe_link_does_not_open_the_page_and_the_link_of_the_page_refuses_a_one_click(
    preferences_page: Door,
) -> None:
    html = str(preferences_page.answer(unsubscribe_request(token()))["body"])
    assert "switch-" not in html
    assert preferences_page.status(posted_form(token(), {"nothing": "1"})) == 400
    assert preferences_page.status(posted_form(token(), {"subscribe": "news"})) == 400
    assert preferences_page.status(posted_form(page_token(), ONE_CLICK)) == 400
    assert outs(preferences_page) == {}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"unsubscribe": "unknown"},
        {"subscribe": "unknown"},
        {"unsubscribe": ""},
        {"topic": "news"},
        {"choice": "unsubscribe"},
        {"recipient": EVE},
    ],
)
def test_the_preferences_page_refuses_a_form_with_an_unknown_field_or_topic(
    preferences_page: Door, fields: dict[str, str]
) -> None:
    assert preferences_page.status(posted_form(page_token(), fields)) == 400
    assert preferences_page.status(posted_form(page_token(), "unsubscribe=news&unsubscribe=offers")) == 400
    assert (outs(preferences_page), preferences_page.writes()) == ({}, 0)


def test_forged_tokens_and_tokens_of_other_keys_get_the_same_page_with_status_404(
    aws: Aws, clock: FakeClock
) -> None:
    door = Door(aws, clock, secrets_with_key(NEWER), PAGE)
    valid = links(NEWER).page_url(ADA).rpartition("/")[2]
    swapped = valid[:40] + links(NEWER).page_url(EVE).rpartition("/")[2][40:]
    answers = [
        door.answer(posted_form(each, {"nothing": "1"}))
        for each in (page_token(), swapped, valid[:-1], valid + "A", "A" * 74, "x", tokens().seal(EVE))
    ]
    assert {each["statusCode"] for each in answers} == {404}
    assert len({each["body"] for each in answers}) == 1
    assert (outs(door), outs(door, EVE)) == ({}, {})
    assert door.status(unsubscribe_request(valid)) == 200


def test_a_link_of_a_previous_key_opens_the_page(aws: Aws, clock: FakeClock) -> None:
    assert (
        Door(aws, clock, secrets_with_key(NEWER, "0123456789abcdefKEY"), PAGE).status(
            unsubscribe_request(page_token())
        )
        == 200
    )


def test_a_request_gets_503_during_an_outage_of_the_preference_table_and_succeeds_if_repeated(
    preferences_page: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(_operation: str) -> None:
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    with monkeypatch.context() as outage:
        before_each_call(outage, unreachable)
        for event in (unsubscribe_request(page_token()), posted_form(page_token(), {"nothing": "1"})):
            assert preferences_page.status(event) == 503
    assert outs(preferences_page) == {}
    assert preferences_page.status(posted_form(page_token(), {"nothing": "1"})) == 200


def test_a_switch_of_the_preferences_page_makes_three_calls_to_aws(
    preferences_page: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    before_each_call(monkeypatch, calls.append)
    preferences_page.answer(posted_form(page_token(), {"unsubscribe": "news"}))
    assert calls == ["Query", "UpdateItem", "Query"]


def test_a_stage_without_topics_has_a_preferences_page_without_switches(aws: Aws, clock: FakeClock) -> None:
    assert switches(opened(Door(aws, clock))) == {}


def test_the_headers_of_the_preferences_page_allow_its_script_and_its_own_host_but_no_referrer(
    preferences_page: Door,
) -> None:
    answer = preferences_page.answer(unsubscribe_request(page_token()))
    script = re.search(r"<script>(.*?)</script>", answer["body"], re.DOTALL)
    assert script
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert answer["headers"].keys() == HEADERS.keys()
    assert answer["headers"] == preferences_page.answer(unsubscribe_request(page_token(), "HEAD"))["headers"]
    assert answer["headers"]["Content-Security-Policy"].endswith(
        f"; script-src 'sha256-{digest}'; connect-src 'self'"
    )
    assert answer["headers"]["Referrer-Policy"] == "no-referrer"
    assert (
        "script"
        not in preferences_page.answer(unsubscribe_request(token()))["headers"]["Content-Security-Policy"]
    )


def test_the_topic_of_a_form_may_have_any_characters(preferences_page: Door) -> None:
    body = urlencode({"unsubscribe": '<nasty>&"'})
    assert preferences_page.status(posted_form(page_token(), body)) == 200
    assert outs(preferences_page) == {'<nasty>&"': "preferences"}
