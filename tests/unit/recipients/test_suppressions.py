"""The suppression list: recipients, the reasons for their entries, and the lifting of entries."""

from typing import Any

import pytest
from msgspec import structs

from mailroom.recipients.choices import Suppression, Suppressions
from tests.support.unit.fakes import Meddler, asked_twice
from tests.support.unit.shared import NOW_MS, SUPPRESSIONS, Aws, FakeClock

ADA = "ada@example.com"
BOUNCE = Suppression(ADA, "mail", "bounce", NOW_MS - 1000, "hard bounce (General)", "m-1")


@pytest.fixture
def suppressions(aws: Aws, clock: FakeClock) -> Suppressions:
    return Suppressions(aws.dynamodb, SUPPRESSIONS, clock)


def _later(seconds: int, **changes: Any) -> Suppression:
    return structs.replace(BOUNCE, at=BOUNCE.at + seconds * 1000, **changes)


def test_a_suppressed_recipient_is_found_with_the_reason(suppressions: Suppressions) -> None:
    assert suppressions.mark(BOUNCE)
    assert suppressions.find("mail", [ADA, "eve@example.com", ADA]) == {ADA: BOUNCE}


def test_a_recipient_suppressed_for_one_channel_is_not_suppressed_for_another_channel(
    suppressions: Suppressions,
) -> None:
    suppressions.mark(BOUNCE)
    assert suppressions.find("sms", [ADA]) == {}


def test_a_later_bounce_does_not_replace_the_first_bounce_of_a_suppressed_recipient(
    suppressions: Suppressions,
) -> None:
    suppressions.mark(BOUNCE)
    assert not suppressions.mark(_later(5, detail="another"))
    assert suppressions.find("mail", [ADA]) == {ADA: BOUNCE}


@pytest.mark.parametrize("seconds", [-5, 5])
def test_a_complaint_replaces_a_bounce_on_the_suppression_list_but_not_the_reverse(
    suppressions: Suppressions, seconds: int
) -> None:
    complaint = _later(seconds, reason="complaint")
    suppressions.mark(BOUNCE)
    assert suppressions.mark(complaint)
    assert not suppressions.mark(complaint)
    assert not suppressions.mark(_later(60))
    assert suppressions.find("mail", [ADA]) == {ADA: complaint}


def test_lifting_a_suppression_is_reported_as_new_even_if_the_first_response_of_dynamodb_was_lost(
    suppressions: Suppressions, aws: Aws, clock: FakeClock
) -> None:
    suppressions.mark(BOUNCE)
    twice: Any = Meddler(aws.dynamodb, update_item=asked_twice)
    assert Suppressions(twice, SUPPRESSIONS, clock).lift(ADA, "mail")
    clock.advance(1)
    assert not suppressions.lift(ADA, "mail")


def test_lifting_the_suppression_of_an_unsuppressed_recipient_writes_no_item(
    suppressions: Suppressions, aws: Aws
) -> None:
    assert not suppressions.lift(ADA, "mail")
    assert aws.dynamodb.scan(TableName=SUPPRESSIONS)["Items"] == []


@pytest.mark.parametrize("again", [BOUNCE, _later(0, reason="complaint")])
def test_a_late_copy_of_a_bounce_does_not_suppress_a_recipient_whose_suppression_was_lifted(
    suppressions: Suppressions, again: Suppression
) -> None:
    suppressions.mark(BOUNCE)
    assert suppressions.lift(ADA, "mail")
    assert not suppressions.mark(again)
    assert suppressions.find("mail", [ADA]) == {}
    assert list(suppressions.listed()) == []


def test_a_complaint_older_than_the_lifting_of_a_suppression_does_not_replace_a_newer_bounce(
    suppressions: Suppressions,
) -> None:
    suppressions.mark(BOUNCE)
    suppressions.lift(ADA, "mail")
    again = _later(3600)
    suppressions.mark(again)
    assert not suppressions.mark(_later(0, reason="complaint"))
    assert suppressions.find("mail", [ADA]) == {ADA: again}


def test_a_bounce_after_a_suppression_was_lifted_suppresses_the_recipient_again(
    suppressions: Suppressions,
) -> None:
    suppressions.mark(BOUNCE)
    suppressions.lift(ADA, "mail")
    again = _later(3600)
    assert suppressions.mark(again)
    assert list(suppressions.listed()) == [again]
