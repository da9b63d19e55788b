"""Preferences of recipients: topics that they opted out of, and into again."""

from typing import Any

import pytest

from mailroom.recipients.choices import By, OptOut, Preferences, TopicChoice
from tests.support.unit.fakes import asked_twice
from tests.support.unit.shared import NOW_MS, Aws, FakeClock
from tests.support.unit.unsubscribing import ADA, TOPIC, preferences_of, stored_preferences

OUT = OptOut(ADA, TOPIC, NOW_MS, "page")


@pytest.fixture
def preferences(aws: Aws, clock: FakeClock) -> Preferences:
    return preferences_of(aws, clock)


def test_an_opt_out_is_found_with_its_time_and_the_way_in_which_it_was_made(preferences: Preferences) -> None:
    assert preferences.opt_out(ADA, TOPIC, "page")
    assert preferences.find([(ADA, TOPIC), ("eve@example.com", TOPIC), (ADA, TOPIC)]) == {(ADA, TOPIC): OUT}
    assert preferences.get(ADA, TOPIC) == OUT


def test_an_opt_out_of_one_topic_does_not_apply_to_another_topic(preferences: Preferences) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    assert preferences.find([(ADA, "news"), (ADA, "Followers")]) == {}
    assert preferences.get(ADA, "news") is None


WITH_9, WITHOUT_9 = "+5491123456789", "+541123456789"  # a mobile number of Argentina


def test_an_opt_out_applies_to_every_spelling_of_a_phone_number(
    preferences: Preferences,
) -> None:
    preferences.opt_out(WITHOUT_9, TOPIC, "page")
    opt_out = OptOut(WITHOUT_9, TOPIC, NOW_MS, "page")
    assert preferences.get(WITH_9, TOPIC) == opt_out
    pairs = [(WITHOUT_9, TOPIC), (WITH_9, TOPIC)]
    assert preferences.find([*pairs, (ADA, TOPIC)]) == dict.fromkeys(pairs, opt_out)


def test_opting_in_again_applies_to_every_spelling_of_a_phone_number(
    preferences: Preferences, clock: FakeClock
) -> None:
    preferences.opt_out(WITHOUT_9, TOPIC, "page")
    preferences.opt_out(WITH_9, TOPIC, "page")
    assert preferences.opt_in(WITH_9, TOPIC, "page")
    assert preferences.find([(WITH_9, TOPIC), (WITHOUT_9, TOPIC)]) == {}
    clock.advance(60)
    assert not preferences.opt_in(WITH_9, TOPIC, "page")


def test_repeating_an_opt_out_keeps_the_first_opt_out_and_returns_false(
    preferences: Preferences, clock: FakeClock
) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    clock.advance(60)
    assert not preferences.opt_out(ADA, TOPIC, "one-click")
    assert preferences.get(ADA, TOPIC) == OUT


def test_opting_in_again_replaces_the_opt_out_by_the_time_of_opting_in(
    preferences: Preferences, aws: Aws, clock: FakeClock
) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    clock.advance(60)
    assert preferences.opt_in(ADA, TOPIC, "page")
    assert preferences.find([(ADA, TOPIC)]) == {}
    assert preferences.get(ADA, TOPIC) is None
    assert stored_preferences(aws) == [
        {"recipient": ADA, "topic": TOPIC, "opted_in_at": NOW_MS + 60_000, "by": "page"}
    ]


def test_an_opt_out_after_opting_in_again_is_stored_with_the_new_time(
    preferences: Preferences, aws: Aws, clock: FakeClock
) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    preferences.opt_in(ADA, TOPIC, "page")
    clock.advance(60)
    assert preferences.opt_out(ADA, TOPIC, "command")
    assert preferences.get(ADA, TOPIC) == OptOut(ADA, TOPIC, NOW_MS + 60_000, "command")
    assert stored_preferences(aws)[0].keys() == {"recipient", "topic", "opted_out_at", "by"}


def test_opting_in_without_an_earlier_opt_out_writes_no_item(preferences: Preferences, aws: Aws) -> None:
    assert not preferences.opt_in(ADA, TOPIC, "page")
    assert stored_preferences(aws) == []


def test_a_new_opt_out_returns_true_even_if_the_first_response_of_dynamodb_was_lost(
    aws: Aws, clock: FakeClock
) -> None:
    preferences = preferences_of(aws, clock, update_item=asked_twice)
    assert preferences.opt_out(ADA, TOPIC, "one-click")
    assert preferences.get(ADA, TOPIC) == OptOut(ADA, TOPIC, NOW_MS, "one-click")


def test_a_new_opt_in_returns_true_even_if_the_first_response_of_dynamodb_was_lost(
    preferences: Preferences, aws: Aws, clock: FakeClock
) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    clock.advance(60)
    assert preferences_of(aws, clock, update_item=asked_twice).opt_in(ADA, TOPIC, "page")
    clock.advance(60)
    assert not preferences.opt_in(ADA, TOPIC, "page")


def test_the_choice_of_one_recipient_is_read_with_a_consistent_read(preferences: Preferences) -> None:
    preferences.get(ADA, TOPIC)
    client: Any = preferences.client
    name, arguments = client.calls[-1]
    assert (name, arguments["ConsistentRead"]) == ("get_item", True)


def test_an_opt_out_that_another_made_for_the_recipient_names_who_made_it_and_in_which_way(
    preferences: Preferences,
) -> None:
    preferences.opt_out(ADA, TOPIC, "api", "shop")
    assert preferences.get(ADA, TOPIC) == OptOut(ADA, TOPIC, NOW_MS, "api", "shop")
    assert preferences.choices(ADA) == {TOPIC: TopicChoice(True, NOW_MS, "api", None)}


def test_an_opt_in_by_the_api_stores_the_given_evidence_and_ends_only_the_opt_out_of_the_given_time(
    preferences: Preferences, aws: Aws, clock: FakeClock
) -> None:
    preferences.opt_out(ADA, TOPIC, "one-click")
    assert not preferences.opt_in(ADA, TOPIC, "api", NOW_MS + 1, actor="shop", evidence="box on /account")
    clock.advance(60)
    assert preferences.opt_in(ADA, TOPIC, "api", NOW_MS, actor="shop", evidence="box on /account")
    assert preferences.choices(ADA) == {TOPIC: TopicChoice(False, NOW_MS + 60_000, "api", NOW_MS)}
    assert (stored_preferences(aws)[0]["evidence"], stored_preferences(aws)[0]["actor"]) == (
        "box on /account",
        "shop",
    )
    preferences.opt_out(ADA, TOPIC, "one-click")
    assert stored_preferences(aws)[0].keys() == {"recipient", "topic", "opted_out_at", "by"}


def test_an_opt_in_on_the_preferences_page_ends_only_opt_outs_that_were_made_on_that_page(
    preferences: Preferences,
) -> None:
    preferences.opt_out(ADA, TOPIC, "preferences")
    preferences.opt_out(ADA, "news", "page")
    assert preferences.opt_in(ADA, TOPIC, "preferences")
    assert not preferences.opt_in(ADA, "news", "preferences")
    assert {topic: choice.out for topic, choice in preferences.choices(ADA).items()} == {
        TOPIC: False,
        "news": True,
    }


def test_an_opt_out_in_one_spelling_of_a_number_takes_precedence_over_a_newer_opt_in_in_another(
    preferences: Preferences, clock: FakeClock
) -> None:
    preferences.opt_out(WITH_9, TOPIC, "page")
    preferences.opt_in(WITH_9, TOPIC, "page")
    preferences.opt_out(WITHOUT_9, TOPIC, "page")
    clock.advance(60)
    preferences.opt_out(WITH_9, TOPIC, "page")
    preferences.opt_in(WITH_9, TOPIC, "api", ended_at=NOW_MS + 60_000)
    assert preferences.choices(WITH_9) == {TOPIC: TopicChoice(True, NOW_MS, "page", None)}


@pytest.mark.parametrize("by", ["one-click", "page"])
def test_an_opt_in_by_an_application_does_not_end_an_opt_out_that_was_repeated_since_it_was_read(
    preferences: Preferences, clock: FakeClock, by: By
) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    clock.advance(60)
    assert not preferences.opt_out(ADA, TOPIC, by)
    assert preferences.get(ADA, TOPIC) == OUT
    assert not preferences.opt_in(ADA, TOPIC, "api", NOW_MS)
    assert preferences.choices(ADA)[TOPIC].at == NOW_MS + 60_000
    assert preferences.opt_in(ADA, TOPIC, "api", NOW_MS + 60_000)
    assert preferences.get(ADA, TOPIC) is None


def test_the_page_of_preferences_does_not_end_its_opt_out_if_one_click_has_repeated_the_opt_out(
    preferences: Preferences, clock: FakeClock
) -> None:
    preferences.opt_out(ADA, TOPIC, "preferences")
    clock.advance(60)
    preferences.opt_out(ADA, TOPIC, "one-click")
    assert not preferences.opt_in(ADA, TOPIC, "preferences")
    assert preferences.opt_in(ADA, TOPIC, "console")
    preferences.opt_out(ADA, TOPIC, "preferences")
    assert preferences.opt_in(ADA, TOPIC, "preferences")


def test_a_repeated_opt_out_by_an_application_changes_nothing(
    preferences: Preferences, aws: Aws, clock: FakeClock
) -> None:
    preferences.opt_out(ADA, TOPIC, "api", "shop")
    before = stored_preferences(aws)
    clock.advance(60)
    preferences.opt_out(ADA, TOPIC, "api", "shop")
    assert stored_preferences(aws) == before
