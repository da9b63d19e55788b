"""People's choices: who has opted out of what, and in again."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.aws.dynamo_batches import UnprocessedKeys
from mailroom.aws.dynamo_values import plain
from mailroom.recipients.choices import OptOut, Preferences, choice_key, opt_out_of
from tests.support.unit.aws_models import problems
from tests.support.unit.fakes import Meddler, asked_twice
from tests.support.unit.shared import NOW_MS, PREFERENCES, Aws, FakeClock
from tests.support.unit.unsubscribing import ADA, TOPIC, preferences_of

OUT = OptOut(ADA, TOPIC, NOW_MS, "page")


@pytest.fixture
def preferences(aws: Aws, clock: FakeClock) -> Preferences:
    return preferences_of(aws, clock)


def stored(aws: Aws) -> list[dict[str, Any]]:
    return [plain(each) for each in aws.dynamodb.scan(TableName=PREFERENCES)["Items"]]


def test_who_opted_out_is_found_with_time_and_way(preferences: Preferences) -> None:
    assert preferences.opt_out(ADA, TOPIC, "page")
    assert preferences.find([(ADA, TOPIC), ("eve@example.com", TOPIC)]) == {(ADA, TOPIC): OUT}
    assert preferences.get(ADA, TOPIC) == OUT


def test_another_topic_of_the_same_recipient_is_another_choice(preferences: Preferences) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    assert preferences.find([(ADA, "news"), (ADA, "Followers")]) == {}
    assert preferences.get(ADA, "news") is None


CALLED, TEXTED = "+5491123456789", "+541123456789"  # one mobile of Argentina


def test_who_opted_out_under_one_form_of_a_number_has_opted_out_under_the_other(
    preferences: Preferences,
) -> None:
    preferences.opt_out(TEXTED, TOPIC, "page")
    (found,) = preferences.find([(CALLED, TOPIC), (ADA, TOPIC)]).items()
    assert found == ((CALLED, TOPIC), OptOut(TEXTED, TOPIC, NOW_MS, "page"))
    assert preferences.get(CALLED, TOPIC) == OptOut(TEXTED, TOPIC, NOW_MS, "page")
    assert preferences.find([(TEXTED, TOPIC), (CALLED, TOPIC)]).keys() == {
        (TEXTED, TOPIC),
        (CALLED, TOPIC),
    }


def test_opting_in_again_counts_for_both_forms_of_a_number(
    preferences: Preferences, clock: FakeClock
) -> None:
    preferences.opt_out(TEXTED, TOPIC, "page")
    preferences.opt_out(CALLED, TOPIC, "page")
    assert preferences.opt_in(CALLED, TOPIC)
    assert preferences.find([(CALLED, TOPIC), (TEXTED, TOPIC)]) == {}
    clock.advance(60)
    assert not preferences.opt_in(CALLED, TOPIC)


def test_a_repeat_changes_nothing_and_says_so(preferences: Preferences, clock: FakeClock) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    clock.advance(60)
    assert not preferences.opt_out(ADA, TOPIC, "one-click")
    assert preferences.get(ADA, TOPIC) == OUT


def test_opting_in_again_leaves_its_time_and_nothing_else(
    preferences: Preferences, aws: Aws, clock: FakeClock
) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    clock.advance(60)
    assert preferences.opt_in(ADA, TOPIC)
    assert preferences.find([(ADA, TOPIC)]) == {}
    assert preferences.get(ADA, TOPIC) is None
    assert stored(aws) == [{"recipient": ADA, "topic": TOPIC, "opted_in_at": NOW_MS + 60_000}]


def test_opting_out_anew_counts_from_then(preferences: Preferences, aws: Aws, clock: FakeClock) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    preferences.opt_in(ADA, TOPIC)
    clock.advance(60)
    assert preferences.opt_out(ADA, TOPIC, "operator")
    assert preferences.get(ADA, TOPIC) == OptOut(ADA, TOPIC, NOW_MS + 60_000, "operator")
    assert stored(aws)[0].keys() == {"recipient", "topic", "opted_out_at", "by"}


def test_opting_in_somebody_who_is_not_out_writes_nothing(preferences: Preferences, aws: Aws) -> None:
    assert not preferences.opt_in(ADA, TOPIC)
    assert stored(aws) == []


def test_a_lost_answer_to_an_opt_out_leaves_it_standing(aws: Aws, clock: FakeClock) -> None:
    preferences = preferences_of(aws, clock, update_item=asked_twice)
    assert preferences.opt_out(ADA, TOPIC, "one-click")
    assert preferences.get(ADA, TOPIC) == OptOut(ADA, TOPIC, NOW_MS, "one-click")


def test_a_lost_answer_to_an_opt_in_does_not_read_as_nobody_having_opted_out(
    preferences: Preferences, aws: Aws, clock: FakeClock
) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    clock.advance(60)
    assert preferences_of(aws, clock, update_item=asked_twice).opt_in(ADA, TOPIC)
    clock.advance(60)
    assert not preferences.opt_in(ADA, TOPIC)


def test_a_hundred_and_one_pairs_are_two_reads_and_a_double_is_asked_once(
    preferences: Preferences,
) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    people = [(f"p{number}@example.com", TOPIC) for number in range(100)]
    assert list(preferences.find([*people, (ADA, TOPIC), (ADA, TOPIC), *people])) == [(ADA, TOPIC)]
    client: Any = preferences.client
    assert client.names().count("batch_get_item") == 2


def test_nobody_is_looked_for_without_a_read(preferences: Preferences) -> None:
    client: Any = preferences.client
    before = client.names().count("batch_get_item")
    assert preferences.find([]) == {}
    assert client.names().count("batch_get_item") == before


def _throttling(times: int) -> Callable[..., Any]:
    left = [times]

    def call(real: Callable[..., Any], **arguments: Any) -> Any:
        if left[0]:
            left[0] -= 1
            return {"Responses": {}, "UnprocessedKeys": arguments["RequestItems"]}
        return real(**arguments)

    return call


def test_what_dynamodb_left_out_is_asked_for_again(aws: Aws, clock: FakeClock) -> None:
    preferences = preferences_of(aws, clock, batch_get_item=_throttling(2))
    preferences.opt_out(ADA, TOPIC, "page")
    assert list(preferences.find([(ADA, TOPIC)])) == [(ADA, TOPIC)]


def test_choices_that_cannot_be_read_whole_let_nobody_pass(aws: Aws, clock: FakeClock) -> None:
    with pytest.raises(UnprocessedKeys):
        preferences_of(aws, clock, batch_get_item=_throttling(99)).find([(ADA, TOPIC)])


def test_the_page_asks_for_the_choice_of_this_moment(preferences: Preferences) -> None:
    preferences.get(ADA, TOPIC)
    client: Any = preferences.client
    name, arguments = client.calls[-1]
    assert (name, arguments["ConsistentRead"]) == ("get_item", True)


def test_every_request_is_one_that_dynamodb_describes(preferences: Preferences) -> None:
    preferences.opt_out(ADA, TOPIC, "page")
    preferences.find([(ADA, TOPIC)])
    preferences.get(ADA, TOPIC)
    preferences.opt_in(ADA, TOPIC)
    client = preferences.client
    assert isinstance(client, Meddler)
    operations = {
        "update_item": "UpdateItem",
        "batch_get_item": "BatchGetItem",
        "get_item": "GetItem",
    }
    made = [(operations[name], arguments) for name, arguments in client.calls if name in operations]
    assert len(made) == 4
    for operation, arguments in made:
        assert problems("dynamodb", operation, arguments) == ""


def test_a_key_and_an_item_can_be_read_by_others_who_read_several_tables() -> None:
    assert choice_key(ADA, TOPIC) == {"recipient": {"S": ADA}, "topic": {"S": TOPIC}}
    out = {"recipient": ADA, "topic": TOPIC, "opted_out_at": NOW_MS, "by": "page"}
    assert opt_out_of(out) == OUT
    assert opt_out_of({"recipient": ADA, "topic": TOPIC, "opted_in_at": NOW_MS}) is None
    assert opt_out_of({}) is None
