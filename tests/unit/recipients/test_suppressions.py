"""The suppression list: recipients, the reasons for their entries, and the lifting of entries."""

from typing import Any

import pytest
from msgspec import structs

from mailroom.recipients.choices import Suppression, Suppressions
from tests.support.unit.fakes import Meddler, asked_twice
from tests.support.unit.shared import NOW_MS, SUPPRESSIONS, Aws, FakeClock

ADA = "ada@example.com"
BOUNCE = Suppression(ADA, "mail", "bounce", NOW_MS - 1000, "hard bounce (General)", "m-1")


def _later(seconds: int, **changes: Any) -> Suppression:
    return structs.replace(BOUNCE, at=BOUNCE.at + seconds * 1000, **changes)


def test_the_suppression_list_finds_a_suppressed_recipient_with_the_reason(list_: Suppressions) -> None:
    assert list_.mark(BOUNCE)
    assert list_.find("mail", [ADA, "eve@example.com", ADA]) == {ADA: BOUNCE}


def test_a_recipient_suppressed_for_one_channel_is_not_suppressed_for_another_channel(
    list_: Suppressions,
) -> None:
    list_.mark(BOUNCE)
    assert list_.find("sms", [ADA]) == {}


def test_a_later_bounce_does_not_replace_the_first_bounce_of_a_suppressed_recipient(
    list_: Suppressions,
) -> None:
    list_.mark(BOUNCE)
    assert not list_.mark(_later(5, detail="another"))
    assert list_.find("mail", [ADA]) == {ADA: BOUNCE}


@pytest.mark.parametrize("seconds", [-5, 5])
def test_a_complaint_replaces_a_bounce_on_the_suppression_list_but_not_the_reverse(
    list_: Suppressions, seconds: int
) -> None:
    complaint = _later(seconds, reason="complaint")
    list_.mark(BOUNCE)
    assert list_.mark(complaint)
    assert not list_.mark(complaint)
    assert not list_.mark(_later(60))
    assert list_.find("mail", [ADA]) == {ADA: complaint}


def test_the_lifting_of_a_suppression_returns_true_even_if_dynamodbs_first_response_was_lost(
    list_: Suppressions, aws: Aws, clock: FakeClock
) -> None:
    list_.mark(BOUNCE)
    twice: Any = Meddler(aws.dynamodb, update_item=asked_twice)
    assert Suppressions(twice, SUPPRESSIONS, clock).lift(ADA, "mail")
    clock.advance(1)
    assert not list_.lift(ADA, "mail")


def test_lifting_the_suppression_of_an_unsuppressed_recipient_writes_no_item(
    list_: Suppressions, aws: Aws
) -> None:
    assert not list_.lift(ADA, "mail")
    assert aws.dynamodb.scan(TableName=SUPPRESSIONS)["Items"] == []


@pytest.mark.parametrize("again", [BOUNCE, _later(0, reason="complaint")])
def test_a_bounce_or_complaint_from_before_a_lifting_does_not_suppress_the_recipient_again(
    list_: Suppressions, again: Suppression
) -> None:
    list_.mark(BOUNCE)
    assert list_.lift(ADA, "mail")
    assert not list_.mark(again)
    assert list_.find("mail", [ADA]) == {}
    assert list(list_.listed()) == []


def test_a_complaint_older_than_the_lifting_of_a_suppression_does_not_replace_a_newer_bounce(
    list_: Suppressions,
) -> None:
    list_.mark(BOUNCE)
    list_.lift(ADA, "mail")
    again = _later(3600)
    list_.mark(again)
    assert not list_.mark(_later(0, reason="complaint"))
    assert list_.find("mail", [ADA]) == {ADA: again}


def test_a_bounce_after_a_suppression_was_lifted_suppresses_the_recipient_again(
    list_: Suppressions,
) -> None:
    list_.mark(BOUNCE)
    list_.lift(ADA, "mail")
    again = _later(3600)
    assert list_.mark(again)
    assert list(list_.listed()) == [again]
