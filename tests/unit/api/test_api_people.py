"""GET and PATCH /people: what a person has opted out of, and changes of it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mailroom.recipients.choices import By, Preferences, Reason, Suppression, Suppressions
from tests.support.unit.api_answers import Answer
from tests.support.unit.api_requests import Api, api_event
from tests.support.unit.people_api import people_api
from tests.support.unit.shared import (
    NOW_MS,
    Aws,
    FakeClock,
    before_each_call,
)
from tests.support.unit.unsubscribing import stored_preferences

ADA, NUMBER = "ada@example.com", "+16175551234"
AT = "2026-11-21T09:00:00.000Z"
SHOP = {"jwt": {"claims": {"sub": "shop"}, "scopes": ["people"]}}
CONSENT = "ticked the box on /account"


@pytest.fixture
def api(aws: Aws, clock: FakeClock, tmp_path: Path) -> Api:
    return people_api(clock, tmp_path, people_per_day=3, caller_claim="sub", default_region="US")


def get_person(api: Api, recipient: str = ADA) -> Answer:
    return api.ask(api_event("GET", f"/people?recipient={quote(recipient, safe='')}", authorizer=SHOP))


def patch_person(api: Api, body: Any, recipient: str = ADA) -> Answer:
    kind = {"Content-Type": "application/json"}
    url = f"/people?recipient={quote(recipient, safe='')}"
    return api.ask(api_event("PATCH", url, json.dumps(body), kind, authorizer=SHOP))


def choose(api: Api, recipient: str = ADA, **topics: Any) -> Answer:
    return patch_person(api, {"topics": topics}, recipient)


OUT = {"state": "out"}


def in_again(at: str = AT, evidence: str = CONSENT) -> dict[str, str]:
    return {"state": "in", "at": at, "evidence": evidence}


def states(answer: Answer) -> dict[str, str]:
    return {each["topic"]: each["state"] for each in answer.json["topics"]}


# look-ups


def test_a_look_up_returns_the_persons_choice_for_each_topic_of_the_stage_with_its_time_and_way(
    api: Api, preferences: Preferences
) -> None:
    preferences.opt_out(ADA, "offers", "one-click")
    answer = get_person(api, "Ada <ADA@Example.com>")
    assert (answer.status, answer.json) == (
        200,
        {
            "recipient": ADA,
            "topics": [
                {"topic": "news", "titles": {"en": "News", "de": "Neues"}, "state": "in"},
                {"topic": "offers", "titles": {}, "state": "out", "at": AT, "by": "one-click"},
            ],
            "stopped": [],
        },
    )


def test_a_look_up_returns_an_opt_out_of_a_topic_that_the_settings_lack(
    api: Api, preferences: Preferences
) -> None:
    preferences.opt_out(ADA, "old", "page")
    preferences.opt_out(ADA, "older", "page")
    preferences.opt_in(ADA, "older", "page")
    assert states(get_person(api)) == {"news": "in", "offers": "in", "old": "out"}


def test_a_look_up_returns_an_opt_in_with_its_time_and_its_way(
    api: Api, preferences: Preferences, clock: FakeClock
) -> None:
    preferences.opt_out(ADA, "news", "page")
    clock.advance(60)
    preferences.opt_in(ADA, "news", "console", actor="arn:aws:iam::1:user/eve")
    (news, _) = get_person(api).json["topics"]
    assert (news["state"], news["at"], news["by"]) == ("in", "2026-11-21T09:01:00.000Z", "console")


@pytest.mark.parametrize(
    ("reason", "why", "ends"),
    [
        ("bounce", "undeliverable", "when an operator lifts it, after the address works again"),
        ("gone", "undeliverable", "when an operator lifts it, after the address works again"),
        ("complaint", "asked_to_stop", "never by this API, because the person complained"),
        ("stop", "asked_to_stop", "when the person texts START; until then, carriers refuse messages"),
        ("operator", "operator", "when an operator lifts it"),
    ],
)
def test_a_look_up_returns_the_reason_of_a_suppression_without_its_error_message_id_and_operator(
    api: Api, list_: Suppressions, reason: Reason, why: str, ends: str
) -> None:
    mark = Suppression(ADA, "mail", reason, NOW_MS, "550 secret detail", "secret-id", "arn:secret")
    list_.mark(mark)
    answer = get_person(api)
    assert answer.json["stopped"] == [{"channel": "mail", "at": AT, "why": why, "ends": ends}]
    assert "secret" not in answer.text


def test_a_look_up_finds_a_person_by_any_spelling_of_a_number_even_without_its_country_code(
    api: Api, list_: Suppressions, preferences: Preferences
) -> None:
    list_.mark(Suppression(NUMBER, "sms", "stop", NOW_MS))
    assert get_person(api, "(617) 555-1234").json["stopped"][0]["channel"] == "sms"
    preferences.opt_out("+541123456789", "news", "page")
    assert states(get_person(api, "+5491123456789"))["news"] == "out"


def test_look_ups_of_an_unknown_person_and_of_a_person_without_choices_cannot_be_distinguished(
    api: Api, list_: Suppressions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lifted suppression is the only data that a person without choices can have."""
    list_.mark(Suppression(ADA, "mail", "bounce", NOW_MS))
    list_.lift(ADA, "mail")
    calls: list[str] = []
    before_each_call(monkeypatch, calls.append)
    get_person(api, "first@example.com")  # creates the caller's item in the table of budgets
    calls.clear()
    known = get_person(api)
    of_known, calls[:] = [*calls], []
    unknown = get_person(api, "eve@example.com")
    assert (of_known, known.status) == (calls, unknown.status)
    assert known.text.replace(ADA, "eve@example.com") == unknown.text
    assert known.headers == unknown.headers


def test_a_look_up_takes_three_dynamodb_calls_and_a_change_takes_one_for_each_topic_and_one_more(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_person(api)
    calls: list[str] = []
    before_each_call(monkeypatch, calls.append)
    get_person(api)
    assert Counter(calls) == {"UpdateItem": 1, "Query": 2}
    calls.clear()
    choose(api, news=OUT, offers=OUT)
    assert Counter(calls) == {"UpdateItem": 2, "Query": 1}


def test_look_ups_by_a_caller_are_limited_per_day_and_changes_of_preferences_are_not(
    api: Api, clock: FakeClock
) -> None:
    assert [get_person(api).status for _ in range(4)] == [200, 200, 200, 429]
    over = get_person(api, "eve@example.com")
    assert over.json["detail"].startswith("the caller may look up 0 more people today; send it again from")
    assert choose(api, news=OUT).status == 200
    clock.advance(int(over.headers["retry-after"]))
    assert get_person(api).status == 200


def test_a_stage_without_the_routes_for_people_responds_with_404(clock: FakeClock, aws: Aws) -> None:
    bare = Api(clock)
    for method in ("GET", "PATCH"):
        assert bare.ask(api_event(method, f"/people?recipient={ADA}")).status == 404


@pytest.mark.parametrize(
    "recipient",
    ["", " ", "ada@", "617-555", "x" * 2049, "\ud800", "+1617555123412345"],
)
def test_an_invalid_recipient_is_refused_by_look_ups_and_by_changes(
    api: Api, aws: Aws, recipient: str
) -> None:
    query = {"recipient": recipient}
    for method in ("GET", "PATCH"):
        made = api_event(
            method, "/people", json.dumps({"topics": {"news": OUT}}), {"Content-Type": "application/json"}
        )
        answer = api.ask({**made, "queryStringParameters": query})
        assert (answer.status, answer.fields) == (422, ["recipient"])
    assert stored_preferences(aws) == []


def test_a_look_up_without_a_recipient_is_refused(api: Api) -> None:
    assert api.ask(api_event("GET", "/people", authorizer=SHOP)).status == 422


# changes


def test_an_opt_out_is_stored_with_the_caller_and_a_repetition_changes_nothing(
    api: Api, aws: Aws, clock: FakeClock
) -> None:
    for _ in range(3):
        answer = choose(api, "ADA@example.com", news=OUT)
        assert (answer.status, answer.json["topics"]) == (
            200,
            [
                {
                    "topic": "news",
                    "titles": {"en": "News", "de": "Neues"},
                    "state": "out",
                    "at": AT,
                    "by": "api",
                }
            ],
        )
        clock.advance(60)
    (row,) = stored_preferences(aws)
    assert (row["recipient"], row["by"], row["actor"]) == (ADA, "api", "shop")


def test_an_opt_in_ends_the_opt_out_that_it_names_and_is_stored_with_the_evidence_of_consent(
    api: Api, aws: Aws, clock: FakeClock, preferences: Preferences
) -> None:
    preferences.opt_out(ADA, "news", "one-click")
    for _ in range(3):
        clock.advance(60)
        answer = choose(api, news=in_again())
        assert (answer.status, states(answer)) == (200, {"news": "in"})
    (row,) = stored_preferences(aws)
    assert (row["evidence"], row["actor"], row["opted_in_at"]) == (CONSENT, "shop", NOW_MS + 60_000)
    assert preferences.get(ADA, "news") is None


@pytest.mark.parametrize("at", ["2026-11-21T09:00:00.001Z", "2026-11-21T08:59:59Z", "2999-01-01T00:00:00Z"])
def test_an_opt_in_that_names_a_time_other_than_the_opt_outs_is_a_conflict_and_leaves_the_opt_out(
    api: Api, preferences: Preferences, at: str
) -> None:
    preferences.opt_out(ADA, "news", "one-click")
    answer = choose(api, news=in_again(at))
    assert (answer.status, answer.fields) == (409, ["topics.news.at"])
    assert AT not in answer.text
    assert preferences.get(ADA, "news") is not None


def test_an_opt_in_that_names_a_wrong_time_gets_the_same_response_with_and_without_an_opt_out(
    api: Api, preferences: Preferences
) -> None:
    preferences.opt_out("eve@example.com", "news", "one-click")
    other = choose(api, "eve@example.com", news=in_again("2026-11-20T00:00:00Z"))
    assert choose(api, news=in_again("2026-11-20T00:00:00Z")).text == other.text


def test_an_opt_out_overrides_an_opt_in_that_was_requested_earlier(
    api: Api, preferences: Preferences, clock: FakeClock
) -> None:
    preferences.opt_out(ADA, "news", "page")
    assert choose(api, news=in_again()).status == 200
    clock.advance(60)
    preferences.opt_out(ADA, "news", "one-click")
    assert choose(api, news=in_again()).status == 409
    assert preferences.get(ADA, "news") is not None


def test_opt_outs_of_a_request_are_stored_even_if_its_opt_in_is_a_conflict(
    api: Api, preferences: Preferences
) -> None:
    assert choose(api, offers=in_again(), news=OUT).status == 409
    assert preferences.get(ADA, "news") is not None


def test_an_opt_in_does_not_lift_a_suppression_by_a_provider_a_person_or_an_operator(
    api: Api, list_: Suppressions, preferences: Preferences
) -> None:
    for channel, reason in (("mail", "bounce"), ("sms", "stop"), ("push", "operator")):
        list_.mark(Suppression(ADA, channel, reason, NOW_MS))  # type: ignore[arg-type]  # its value is right
    preferences.opt_out(ADA, "news", "page")
    assert choose(api, news=in_again()).status == 200
    assert len(list_.entries(ADA)) == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "topics"),
        ({"topics": {}}, "topics"),
        ({"topics": [OUT]}, "topics"),
        ({"topics": {"news": OUT}, "lift": ["sms"]}, "topics"),
        ({"topics": {f"t{at}": OUT for at in range(101)}}, "topics"),
        ({"topics": {"typo": OUT}}, "topics.typo"),
        ({"topics": {"news": "out"}}, "topics.news"),
        ({"topics": {"news": {"state": "maybe"}}}, "topics.news.state"),
        ({"topics": {"news": {**OUT, "at": AT}}}, "topics.news"),
        ({"topics": {"news": {"state": "in", "evidence": CONSENT}}}, "topics.news"),
        ({"topics": {"news": {"state": "in", "at": AT}}}, "topics.news"),
        ({"topics": {"news": in_again("yesterday")}}, "topics.news.at"),
        ({"topics": {"news": in_again(evidence="")}}, "topics.news.evidence"),
        ({"topics": {"news": in_again(evidence="x" * 301)}}, "topics.news.evidence"),
        ({"topics": {"offers": OUT, "news": in_again("yesterday")}}, "topics.news.at"),
    ],
)
def test_an_invalid_change_of_preferences_is_not_stored_and_the_error_names_its_invalid_field(
    api: Api, aws: Aws, body: Any, field: str
) -> None:
    answer = patch_person(api, body)
    assert (answer.status, answer.fields) == (422, [field])
    assert stored_preferences(aws) == []


def test_a_change_of_preferences_whose_body_is_not_json_is_refused(api: Api) -> None:
    url = f"/people?recipient={ADA}"
    assert api.ask(api_event("PATCH", url, "{}", {"Content-Type": "text/plain"})).status == 415
    assert api.ask(api_event("PATCH", url, "[", {"Content-Type": "application/json"})).status == 400


@pytest.mark.parametrize("by", ["one-click", "page", "preferences", "command", "console", "api"])
def test_a_look_up_returns_the_way_in_which_a_person_has_opted_out(
    api: Api, preferences: Preferences, by: By
) -> None:
    preferences.opt_out(ADA, "news", by)
    assert get_person(api).json["topics"][0]["by"] == by
