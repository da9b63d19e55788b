"""Opt-outs at the sender: a recipient who opted out of a topic gets no message of that topic."""

from typing import Any

import pytest

from mailroom.recipients.choices import Preferences, Suppression, Suppressions
from tests.support.unit.fakes import Meddler
from tests.support.unit.post import Counted, Log, Make
from tests.support.unit.shared import NOW_MS, PREFERENCES, SUPPRESSIONS, Aws, FakeClock, item

ADA, EVE = "ada@example.com", "eve@example.com"


def test_a_mail_of_a_topic_that_its_recipient_opted_out_of_is_suppressed_with_the_reason(
    make_post: Make,
    list_: Suppressions,
    preferences: Preferences,
    aws: Aws,
    log: Log,
    counted: Counted,
) -> None:
    preferences.opt_out(ADA, "news", "one-click")
    worker = make_post(suppressions=list_)
    assert worker.handle(item(to="Ada <ADA@example.com>", topic="news")) == {}
    assert worker.submitted == []
    stored = aws.item()
    assert stored["status"] == "suppressed"
    assert stored["error"] == {
        "code": "opted_out",
        "message": "opted out of 'news' on 2026-11-21; the recipient can opt in again",
    }
    assert "completedAt" in stored
    assert stored["history"][-1]["code"] == "opted_out"
    assert counted() == {"Suppressed": 1}
    assert "example.com" not in str(log())


def test_recipients_who_opted_out_are_left_out_of_a_mail_to_several_recipients(
    make_post: Make, list_: Suppressions, preferences: Preferences, aws: Aws
) -> None:
    preferences.opt_out(ADA, "news", "page")
    worker = make_post(suppressions=list_)
    worker.handle(item(to=[ADA, EVE], topic="news"))
    (mail,) = worker.adapter.submitted
    assert mail.to == [EVE]
    assert aws.item()["recipients"][ADA]["status"] == "suppressed"


def test_a_suppression_is_the_recorded_reason_even_if_the_recipient_also_opted_out(
    make_post: Make, list_: Suppressions, preferences: Preferences, aws: Aws
) -> None:
    preferences.opt_out(ADA, "news", "page")
    list_.mark(Suppression(ADA, "mail", "bounce", NOW_MS))
    make_post(suppressions=list_).handle(item(to=ADA, topic="news"))
    assert aws.item()["error"]["code"] == "suppressed"


def test_a_batch_reads_suppressions_and_opt_outs_in_one_call(
    make_post: Make, aws: Aws, clock: FakeClock, preferences: Preferences
) -> None:
    preferences.opt_out(EVE, "offers", "page")
    client: Any = Meddler(aws.dynamodb)
    worker = make_post(suppressions=Suppressions(client, SUPPRESSIONS, clock))
    worker.handle(
        item(id="a", to=ADA, topic="news"),
        item(id="b", to=ADA, topic="offers"),
        item(id="c", to=EVE, topic="offers"),
        item(id="d", to=EVE),
    )
    assert worker.submitted == ["a", "b", "d"]
    (tables,) = [arguments["RequestItems"] for name, arguments in client.calls if name == "batch_get_item"]
    assert {name: len(read["Keys"]) for name, read in tables.items()} == {SUPPRESSIONS: 2, PREFERENCES: 3}


def test_a_batch_of_messages_without_topics_does_not_read_opt_outs(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    client: Any = Meddler(aws.dynamodb)
    make_post(suppressions=Suppressions(client, SUPPRESSIONS, clock)).handle(
        item(to=ADA), item(id="b", to=EVE)
    )
    (tables,) = [arguments["RequestItems"] for name, arguments in client.calls if name == "batch_get_item"]
    assert tables.keys() == {SUPPRESSIONS}


@pytest.mark.parametrize("topic", ["", "x" * 65, "two\nlines"])
def test_a_message_with_an_invalid_topic_fails(
    make_post: Make, list_: Suppressions, aws: Aws, topic: str
) -> None:
    make_post(suppressions=list_).handle(item(topic=topic))
    assert aws.item()["error"]["message"].startswith("topic: is not a topic's name; use 1 to 64")
