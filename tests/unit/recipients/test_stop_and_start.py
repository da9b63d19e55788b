"""STOP and START of one number, in any order, any number of times, beside the other reasons of the list."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mailroom.recipients.choices import Addressee, Choices, Preferences, Suppression, Suppressions
from tests.support.dynamodb import in_memory_client
from tests.support.tables import create_table
from tests.support.unit.shared import NOW_MS, PREFERENCES, Aws, FakeClock

ADA = "+16175551234"
LANDLINE = Suppression(ADA, "sms", "bounce", NOW_MS - 9000, "undelivered: error 30006", "s-0")
Text = tuple[str, int]
"""STOP or START, and seconds after the earliest time of a text."""


def stop(sent_ms: int = NOW_MS, detail: str = "STOP sent to +12025550123") -> Suppression:
    return Suppression(ADA, "sms", "stop", sent_ms, detail)


def of_ada(list_: Suppressions) -> Suppression | None:
    return list_.find("sms", [ADA]).get(ADA)


def test_an_sms_with_stop_suppresses_a_number_for_sms_but_not_for_faxes(list_: Suppressions) -> None:
    assert list_.mark(stop())
    assert of_ada(list_) == stop()
    assert list(list_.listed()) == [stop()]
    assert list_.find("fax", [ADA]) == {}


def test_the_reason_for_a_blocked_sms_names_the_number_that_received_the_stop(
    list_: Suppressions, aws: Aws
) -> None:
    list_.mark(stop())
    choices = Choices(list_, Preferences(aws.dynamodb, PREFERENCES))
    (blocked,) = choices.find("sms", [Addressee(ADA)]).values()
    assert blocked.code == "suppressed"
    assert blocked.sentence == (
        "on the suppression list since 2026-11-21: the recipient opted out (STOP sent to +12025550123); a "
        "START text ends it"
    )


def test_the_reason_for_a_blocked_recipient_names_no_detail_if_the_suppression_has_none(
    list_: Suppressions, aws: Aws
) -> None:
    list_.mark(Suppression(ADA, "sms", "operator", NOW_MS))
    choices = Choices(list_, Preferences(aws.dynamodb, PREFERENCES))
    (blocked,) = choices.find("sms", [Addressee(ADA)]).values()
    assert blocked.sentence == (
        "on the suppression list since 2026-11-21: an operator added it; an operator can remove it"
    )


def test_a_late_copy_of_a_stop_does_not_suppress_a_number_whose_suppression_was_lifted(
    list_: Suppressions, clock: FakeClock
) -> None:
    list_.mark(LANDLINE)
    list_.mark(stop())
    clock.advance(60)
    assert list_.lift(ADA, "sms")
    assert of_ada(list_) is None
    assert not list_.mark(stop())
    clock.advance(1)
    assert not list_.lift(ADA, "sms")
    assert list_.mark(stop(NOW_MS + 61_000))
    assert of_ada(list_) == stop(NOW_MS + 61_000)


texts = st.lists(st.tuples(st.sampled_from(["stop", "start"]), st.integers(0, 5)), max_size=7)


def _write(list_: Suppressions, texts: Sequence[Text]) -> None:
    for wish, second in texts:
        sent_ms = NOW_MS + second * 1000
        if wish == "stop":
            list_.mark(stop(sent_ms))
        else:
            list_.start(ADA, "sms", sent_ms)


@given(texts, st.booleans(), st.data())
def test_the_latest_stop_or_start_decides_in_any_order_of_arrival_and_stop_wins_at_the_same_time(
    texts: list[Text], landline: bool, data: st.DataObject
) -> None:
    client: Any = in_memory_client()
    create_table(client, "list", "recipient", "channel")
    list_ = Suppressions(client, "list", FakeClock())
    copies = texts + data.draw(st.lists(st.sampled_from(texts), max_size=4) if texts else st.just([]))
    arriving = data.draw(st.permutations(copies))
    half = data.draw(st.integers(0, len(arriving)))
    _write(list_, arriving[:half])
    if landline:
        list_.mark(LANDLINE)
    _write(list_, arriving[half:])
    stops = [second for wish, second in texts if wish == "stop"]
    starts = [second for wish, second in texts if wish == "start"]
    expected = LANDLINE if landline else None
    if stops and max(stops) >= max(starts, default=0):
        expected = stop(NOW_MS + max(stops) * 1000)
    assert of_ada(list_) == expected
    assert [*list_.listed()] == ([expected] if expected else [])
