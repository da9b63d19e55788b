"""The suppression list: who is on it, how they came there, and how they leave it."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.aws.dynamo_batches import UnprocessedKeys
from mailroom.recipients.choices import Suppression, Suppressions
from tests.support.unit.fakes import Meddler, asked_twice
from tests.support.unit.shared import NOW_MS, SUPPRESSIONS, Aws, FakeClock

ADA = "ada@example.com"
BOUNCE = Suppression(ADA, "mail", "bounce", NOW_MS - 1000, "hard bounce (General)", "m-1")


@pytest.fixture
def suppressions(aws: Aws, clock: FakeClock) -> Suppressions:
    return Suppressions(aws.dynamodb, SUPPRESSIONS, clock)


def _later(seconds: int, **changes: Any) -> Suppression:
    return Suppression(**{**_fields(BOUNCE), "at": BOUNCE.at + seconds * 1000, **changes})


def _fields(suppression: Suppression) -> dict[str, Any]:
    return {name: getattr(suppression, name) for name in suppression.__struct_fields__}


def test_a_marked_recipient_is_found_with_the_reason(suppressions: Suppressions) -> None:
    assert suppressions.mark(BOUNCE)
    assert suppressions.find("mail", [ADA, "eve@example.com"]) == {ADA: BOUNCE}


def test_another_channel_of_the_same_recipient_is_not_on_the_list(suppressions: Suppressions) -> None:
    suppressions.mark(BOUNCE)
    assert suppressions.find("sms", [ADA]) == {}


def test_the_first_bounce_stays(suppressions: Suppressions) -> None:
    suppressions.mark(BOUNCE)
    assert not suppressions.mark(_later(5, detail="another"))
    assert suppressions.find("mail", [ADA]) == {ADA: BOUNCE}


@pytest.mark.parametrize("seconds", [-5, 5])
def test_a_complaint_takes_the_place_of_a_bounce_and_not_the_other_way_round(
    suppressions: Suppressions, seconds: int
) -> None:
    complaint = _later(seconds, reason="complaint")
    suppressions.mark(BOUNCE)
    assert suppressions.mark(complaint)
    assert not suppressions.mark(complaint)
    assert not suppressions.mark(_later(60))
    assert suppressions.find("mail", [ADA]) == {ADA: complaint}


def test_a_lifted_recipient_is_off_the_list(suppressions: Suppressions) -> None:
    suppressions.mark(BOUNCE)
    assert suppressions.lift(ADA, "mail")
    assert suppressions.find("mail", [ADA]) == {}
    assert list(suppressions.listed()) == []


def test_a_lost_answer_to_a_lifting_does_not_read_as_somebody_elses(
    suppressions: Suppressions, aws: Aws, clock: FakeClock
) -> None:
    suppressions.mark(BOUNCE)
    twice: Any = Meddler(aws.dynamodb, update_item=asked_twice)
    assert Suppressions(twice, SUPPRESSIONS, clock).lift(ADA, "mail")
    clock.advance(1)
    assert not suppressions.lift(ADA, "mail")


def test_lifting_somebody_who_is_not_on_the_list_writes_nothing(suppressions: Suppressions, aws: Aws) -> None:
    assert not suppressions.lift(ADA, "mail")
    assert aws.dynamodb.scan(TableName=SUPPRESSIONS)["Items"] == []


@pytest.mark.parametrize("again", [BOUNCE, _later(0, reason="complaint")])
def test_a_late_copy_of_an_old_event_does_not_undo_the_lifting(
    suppressions: Suppressions, again: Suppression
) -> None:
    suppressions.mark(BOUNCE)
    suppressions.lift(ADA, "mail")
    assert not suppressions.mark(again)
    assert suppressions.find("mail", [ADA]) == {}


def test_an_old_complaint_that_comes_late_does_not_undo_a_lifting_that_a_new_bounce_undid(
    suppressions: Suppressions,
) -> None:
    suppressions.mark(BOUNCE)
    suppressions.lift(ADA, "mail")
    again = _later(3600)
    suppressions.mark(again)
    assert not suppressions.mark(_later(0, reason="complaint"))
    assert suppressions.find("mail", [ADA]) == {ADA: again}


def test_a_bounce_after_the_lifting_counts_again(suppressions: Suppressions) -> None:
    suppressions.mark(BOUNCE)
    suppressions.lift(ADA, "mail")
    again = _later(3600)
    assert suppressions.mark(again)
    assert list(suppressions.listed()) == [again]


def test_two_hundred_recipients_are_two_reads_and_a_double_is_asked_for_once(aws: Aws) -> None:
    client = Meddler(aws.dynamodb)
    list_ = Suppressions(client, SUPPRESSIONS, FakeClock())  # type: ignore[arg-type]
    list_.mark(BOUNCE)
    people = [f"p{number}@example.com" for number in range(199)]
    assert list(list_.find("mail", [*people, ADA, ADA])) == [ADA]
    assert client.names().count("batch_get_item") == 2


def _throttling(times: int) -> Callable[..., Any]:
    left = [times]

    def call(real: Callable[..., Any], **arguments: Any) -> Any:
        if left[0]:
            left[0] -= 1
            return {"Responses": {}, "UnprocessedKeys": arguments["RequestItems"]}
        return real(**arguments)

    return call


def test_what_dynamodb_left_out_is_asked_for_again(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb, batch_get_item=_throttling(2))
    list_ = Suppressions(client, SUPPRESSIONS, FakeClock())
    list_.mark(BOUNCE)
    assert list(list_.find("mail", [ADA])) == [ADA]


def test_a_list_that_cannot_be_read_whole_lets_nobody_pass(aws: Aws) -> None:
    client: Any = Meddler(aws.dynamodb, batch_get_item=_throttling(99))
    with pytest.raises(UnprocessedKeys):
        Suppressions(client, SUPPRESSIONS, FakeClock()).find("mail", [ADA])
