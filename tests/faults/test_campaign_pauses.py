"""A paused run holds its messages, and sends each of them once after it is resumed."""

from collections.abc import Callable

import pytest
from msgspec import structs

from mailroom.ledger.run_states import FRESH_SECONDS, STOPPED
from tests.faults.test_campaign_stops import FEW, PEOPLE, check_sent_once, ends, queued
from tests.support.faults.campaign_world import COLLECT
from tests.support.faults.stop_world import StopWorld
from tests.support.faults.stops import stops
from tests.support.faults.world import BULK, HOUR

Act = Callable[[StopWorld], object]


def paused_world(per_day: int = 10**6, sent: int = 6, people: int = PEOPLE) -> StopWorld:
    """Return a world whose run was paused after it had sent some messages, and has held the others."""
    world = StopWorld(people, per_day)
    world.begin()
    while len(world.accepted_ids()) < sent:
        assert world.play()
    world.pause()
    world.play_on(FRESH_SECONDS)
    return world


def check_pause(world: StopWorld, seconds: float) -> None:
    """Check that no message is sent while the run is paused, and each message once afterwards."""
    out = len(world.accepted_ids())
    world.play_on(seconds)
    assert len(world.accepted_ids()) == out
    check_resumed(world)


def check_resumed(world: StopWorld) -> None:
    world.resume()
    world.play_on()
    assert (world.sends().total(), {*world.sends().values()}) == (world.campaign.people.count, {1})
    assert {*ends(world)} == {"sent"}
    assert not any(world.queues.dead.values())


@pytest.mark.parametrize("per_day", [10**6, 12])
def test_a_paused_run_sends_no_message_until_it_is_resumed_and_then_sends_each_message_once(
    per_day: int,
) -> None:
    world = paused_world(per_day)
    assert len(world.accepted_ids()) < PEOPLE
    check_pause(world, HOUR)


def test_a_paused_run_that_is_started_goes_on_and_sends_each_message_once() -> None:
    world = paused_world()
    world.begin()
    world.play_on()
    check_sent_once(world)


def test_a_paused_run_that_is_stopped_cancels_its_unsent_messages() -> None:
    world = paused_world()
    out = len(world.accepted_ids())
    world.stop()
    world.play_on()
    assert ends(world) == {"sent": out, f"cancelled: {STOPPED}": PEOPLE - out}


def of_second_page() -> StopWorld:
    """Return a world whose run was paused between its first page and its second."""
    world = StopWorld(PEOPLE)
    world.campaign.definition = structs.replace(world.campaign.definition, page_size=PEOPLE // 2)
    world.begin()
    world.campaign.deliver(COLLECT, 1)
    world.pause()
    return world


def of_queue() -> StopWorld:
    """Return a world whose run was paused when its messages were in their queue."""
    world = queued()
    world.pause()
    return world


def of_line() -> StopWorld:
    """Return a world whose run was paused when its messages waited for the day."""
    world = StopWorld(4, per_day=4)
    world.begin()
    while not world.parts():
        assert world.play()
    world.pause()
    world.clock.now = max(world.clock.now, world.next_due() or 0.0)
    return world


def of_resume() -> StopWorld:
    """Return a world whose run was paused, and was resumed before a round of `release`."""
    world = paused_world(people=FEW)
    world.resume()
    world.clock.now = max(world.clock.now, world.next_due() or 0.0)
    # The calls so far depend on random ids; a stop is named by the number of its call.
    world.outside.calls.clear()
    return world


@pytest.mark.parametrize(
    ("make", "act", "least"),
    [
        (of_second_page, lambda world: world.campaign.deliver(COLLECT, 1), 3),
        (of_queue, lambda world: world.deliver(BULK), 3),
        (of_line, lambda world: world.release(), 7),
    ],
    ids=["collect", "sender", "release"],
)
def test_each_message_of_a_paused_run_is_sent_once_after_the_resume_wherever_a_function_crashes(
    make: Callable[[], StopWorld], act: Act, least: int
) -> None:
    for world, _where in stops(make, act, least):
        check_pause(world, 300)


def test_each_message_of_a_resumed_run_is_sent_once_wherever_release_crashes() -> None:
    for world, _where in stops(of_resume, StopWorld.release, least=12):
        check_resumed(world)


def test_a_message_with_an_unknown_outcome_is_not_submitted_again_while_its_run_is_paused() -> None:
    for world, where in stops(queued, lambda world: world.deliver(BULK), least=3):
        if "before send_email" in where:
            world.pause()
            check_pause(world, HOUR / 6)
            return
    pytest.fail("no stop before the submit")
