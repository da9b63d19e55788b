"""Waits and their ends, stopped at every call, with another round, a worker or a verb let in between."""

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from mailroom.clock import iso
from mailroom.ledger.erasure import Erasure
from mailroom.message.message import Key
from tests.support.faults.base import LEASE
from tests.support.faults.repairs import of_mail, resend
from tests.support.faults.stops import each_entry, stops
from tests.support.faults.world import BULK, HOUR, MAIL, World, mail

NewWorld = Callable[..., World]
NAMES = ("a", "b", "c")
FIRST = Key("a", "mail")
PART = 3
DAY: dict[str, Any] = {"budgets_table": "budgets", "per_day": (("0001-01-01", 2 * PART),), "reserve": 0.5}
WINDOW = {"from": "09:00", "to": "20:00", "zone": "UTC"}
REASONS = ("send_at", "window", "day")
"""Names of the messages: each waits for another reason, and the last one in the line."""
of_each_reason = pytest.mark.parametrize("reason", REASONS)
of_time_and_line = pytest.mark.parametrize("reason", ["send_at", "day"])
"""Waits that end by their time and in the line; a window's ends by its time as well."""


def world_with_held(new_world: NewWorld, reason: str) -> World:
    """Make a world at 8 in the morning in which messages were put that may not be sent yet."""
    world = new_world()
    by_reason: dict[str, dict[str, Any]] = {
        "send_at": {"send_at": iso(world.clock.now + HOUR)},
        "window": {"window": WINDOW},
        "day": {"lane": "bulk"},
    }
    more = by_reason[reason]
    if reason == "day":
        world.day = DAY
        world.budget().ask(PART)
    world.put(*(mail(name, **more) for name in NAMES))
    if reason != "send_at":
        world.stream()
    return world


def hold(world: World) -> None:
    """Let the messages begin to wait, as far as the process lives."""
    if not any(world.queues.messages.values()):
        world.stream()
    for url in (MAIL, BULK):
        world.deliver(url)


def ready(new_world: NewWorld, reason: str) -> World:
    """Make a world in which the time of the messages has come."""
    world = world_with_held(new_world, reason)
    hold(world)
    assert {world.found(name)["status"] for name in NAMES} == {"scheduled"}
    world.clock.now = max(world.clock.now, world.next_due() or 0)
    if reason == "day":
        while not world.budget().line().recipients:
            world.clock.now += HOUR
    return world


def check_times(world: World, where: str, reason: str) -> None:
    """Check that each message was sent once and not too early, and that none is lost or still waits."""
    world.settle()
    assert world.sends() == dict.fromkeys(NAMES, 1), where
    assert {world.end(name) for name in NAMES} == {"sent"}, where
    assert not any(world.queues.dead.values()), where
    hours = [(at - 1_800_000_000) / HOUR for at in world.ses.times]
    assert min(hours) >= (24 if reason == "day" else 1), where
    assert reason != "window" or all(9 <= (8 + hour) % 24 < 20 for hour in hours), where


@of_each_reason
def test_a_message_that_must_wait_is_sent_once_wherever_the_function_that_begins_its_wait_crashes(
    new_world: NewWorld, reason: str
) -> None:
    for world, where in stops(partial(world_with_held, new_world, reason), hold):
        check_times(world, where, reason)


@of_each_reason
def test_a_message_that_waited_is_sent_once_wherever_release_crashes(
    new_world: NewWorld, reason: str
) -> None:
    for world, where in stops(partial(ready, new_world, reason), World.release, least=5):
        check_times(world, where, reason)


@of_time_and_line
def test_the_end_of_a_messages_wait_deletes_the_waits_mark_stored_content_and_due_time(
    new_world: NewWorld, reason: str
) -> None:
    world = ready(new_world, reason)
    check_times(world, "no stop", reason)
    assert not world.dynamodb.tables["contents"].items
    assert not any("wait" in item for item in world.dynamodb.tables["ledger"].items.values())
    assert world.budget().line().at == math.inf


def second_round(world: World) -> None:
    """Let another round in, after the lease of the first, and a worker."""
    world.clock.now += LEASE + 1
    world.release()
    for url in (MAIL, BULK):
        world.deliver(url)


@of_time_and_line
def test_two_concurrent_rounds_of_release_send_each_message_once(new_world: NewWorld, reason: str) -> None:
    for world, where in each_entry(partial(ready, new_world, reason), World.release, second_round):
        check_times(world, where, reason)


def hold_again(world: World) -> None:
    """Let a worker in that may not send what it gets: the window has closed, and the day is used up."""
    world.clock.now += 12 * HOUR
    if world.day:
        world.budget().count(PART, bulk=True)
    for url in (MAIL, BULK):
        world.deliver(url)


@pytest.mark.parametrize("reason", ["window", "day"])
def test_a_message_that_a_worker_holds_again_during_release_waits_for_its_new_time(
    new_world: NewWorld, reason: str
) -> None:
    held = 0
    for world, where in each_entry(partial(ready, new_world, reason), World.release, hold_again):
        held += world.sends() == {} and world.found("a")["status"] == "scheduled"
        check_times(world, where, reason)
    assert held


@of_time_and_line
def test_a_message_that_is_cancelled_during_release_is_sent_only_if_the_cancel_is_refused(
    new_world: NewWorld, reason: str
) -> None:
    answers: list[bool] = []

    def cancel(world: World) -> None:
        answers.append(world.ledger.cancel(FIRST))

    def deliver_and_cancel(world: World) -> None:
        world.clock.now += 121
        for url in (MAIL, BULK):
            world.deliver(url)
        cancel(world)

    begin = partial(ready, new_world, reason)
    for enter in (cancel, deliver_and_cancel):
        for world, where in each_entry(begin, World.release, enter):
            world.settle()
            expected = {name: 1 for name in NAMES if name != "a" or not answers[-1]}
            assert world.sends() == expected, where
            assert world.end("a") == ("cancelled: cancelled" if answers[-1] else "sent"), where
    assert {*answers} == {True, False}


def erase(world: World) -> None:
    """Take the person's message back, and delete all that is known of it, as `erase` does."""
    if world.ledger.cancel(FIRST):
        world.contents.erase(FIRST)
        erasure = Erasure(world.suppressions.client, "ledger", 1e6, world.clock)
        assert erasure.empty(FIRST, world.found("a"))
        world.take_back("a")


def check_erased(world: World, where: str) -> None:
    world.settle()
    assert world.sends()["a"] == (0 if world.end("a").startswith("cancelled") else 1), where
    assert {name: world.sends()[name] for name in ("b", "c")} == {"b": 1, "c": 1}, where
    assert not any(
        item["message"]["S"] == "mail#a" for item in world.dynamodb.scan(TableName="contents")["Items"]
    )


@of_each_reason
def test_a_message_that_an_erasure_cancels_is_not_sent_and_leaves_no_content_whenever_release_runs(
    new_world: NewWorld, reason: str
) -> None:
    begin = partial(ready, new_world, reason)
    for world, where in each_entry(begin, erase, second_round):
        check_erased(world, where)
    for world, where in each_entry(begin, World.release, erase):
        check_erased(world, where)


@of_each_reason
def test_a_corrected_and_resent_message_is_sent_once_with_its_new_content_whenever_release_runs(
    new_world: NewWorld, reason: str
) -> None:
    def correct(world: World) -> None:
        cancelled = world.ledger.cancel(FIRST)
        (item,) = (item for item in world.items if item["id"] == "a")
        world.put({**item, "first_name": "Corrected", "send_at": None})
        (message,) = resend(of_mail(world), "a", force=True)
        assert (message.result == "resent") is cancelled

    begin = partial(ready, new_world, reason)
    worlds = [*each_entry(begin, correct, World.release), *each_entry(begin, World.release, correct)]
    for world, where in worlds:
        world.settle()
        assert world.sends() == dict.fromkeys(NAMES, 1), where
        assert world.end("a") == "sent", where
        corrected = [request for request in world.ses.accepted if "Corrected" in json.dumps(request)]
        assert len(corrected) == 1, where
