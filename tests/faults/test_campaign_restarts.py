"""A run that is stopped and started again, with crashes and races at every call of compose, of the senders
and of release. No message of the earlier start is sent, and each person of the present audience gets one."""

from collections.abc import Callable

import pytest

from mailroom.campaigns.audience import Found, Page, Recipient
from tests.support.faults.campaign_world import AUDIENCE, COLLECT, People
from tests.support.faults.stop_world import StopWorld
from tests.support.faults.stops import each_entry, stops
from tests.support.faults.world import BULK

Act = Callable[[StopWorld], object]
NUMBER = 6
"""Number of people in the first audience."""
LEFT = {"p4", "p5"}
"""People who are not in the audience of the second start."""


class Corrected(People):
    """The audience of the second start, with another first name."""

    def page(self, page: Page) -> Found:
        found = super().page(page)
        people = [
            Recipient(person.key, {**person.attributes, "first_name": "Corrected"})
            for person in found.recipients
            if person.key not in LEFT
        ]
        return Found(people, found.cursor, found.faults)


def start_again(world: StopWorld) -> None:
    """Correct the audience, start the run again, and collect its audience."""
    world.campaign._people = Corrected(NUMBER)
    world.begin()
    world.campaign.deliver(COLLECT, 1)


def compose(world: StopWorld) -> None:
    world.campaign.deliver(AUDIENCE)
    world.dispatch()


def start_and_compose(world: StopWorld) -> None:
    start_again(world)
    compose(world)


def in_queue() -> StopWorld:
    """Return a world whose messages are in the lane's queue, with one of the audience's chunks left."""
    world = StopWorld(NUMBER)
    world.begin()
    world.campaign.deliver(COLLECT, 1)
    world.campaign.deliver(AUDIENCE, 1)
    world.dispatch()
    return world


def in_line() -> StopWorld:
    """Return a world whose messages wait, because the daily quota is used up."""
    world = in_queue()
    world.budget().close()
    world.campaign.rooms = {}  # pages are collected all the same
    world.deliver(BULK)
    assert world.parts()
    return world


def world_of_paused_run() -> StopWorld:
    """Return a world whose messages wait, because their run is paused."""
    world = in_queue()
    world.pause()
    world.deliver(BULK)
    assert world.parts()
    return world


def begin_and_stop(make: Callable[[], StopWorld]) -> Callable[[], StopWorld]:
    def begin() -> StopWorld:
        world = make()
        world.stop()
        return world

    return begin


def begin_and_start_again(make: Callable[[], StopWorld]) -> Callable[[], StopWorld]:
    def begin() -> StopWorld:
        world = make()
        start_again(world)
        return world

    return begin


def check_persons(world: StopWorld, where: str) -> None:
    """Play to the end, and check who has got which message. Messages in doubt may stay unknown."""
    world.play_on()
    persons = [request["Destination"]["ToAddresses"][0].partition("@")[0] for request in world.ses.accepted]
    ends = {item["id"]["S"].split("#")[2]: world.end(item["id"]["S"]) for item in ledger_items(world)}
    unknown = {person for person, end in ends.items() if end == "failed: outcome_unknown"}
    assert len(persons) == len({*persons}), where
    assert {f"p{at}" for at in range(NUMBER)} - LEFT <= {*persons} | unknown, (where, ends)
    assert not LEFT & {*persons}, where
    assert all("Corrected" in str(request) for request in world.ses.accepted), where
    assert not any(world.queues.dead.values()), where


def ledger_items(world: StopWorld) -> list[dict[str, dict[str, str]]]:
    return [*world.dynamodb.tables["ledger"].items.values()]


def release(world: StopWorld) -> None:
    world.clock.now = max(world.clock.now, world.next_due() or 0.0)
    world.release()


def send(world: StopWorld) -> None:
    world.deliver(BULK)


def send_and_release(world: StopWorld) -> None:
    send(world)
    release(world)


WORLDS = {"in the queue": in_queue, "in the line": in_line, "paused": world_of_paused_run}


@pytest.mark.parametrize("make", WORLDS.values(), ids=WORLDS)
def test_a_restarted_run_sends_each_person_one_message_wherever_a_function_that_cancels_crashes(
    make: Callable[[], StopWorld],
) -> None:
    for world, where in stops(begin_and_stop(make), send_and_release, least=2):
        start_and_compose(world)
        check_persons(world, where)


@pytest.mark.parametrize("make", WORLDS.values(), ids=WORLDS)
def test_a_restarted_run_sends_each_person_one_message_wherever_compose_crashes(
    make: Callable[[], StopWorld],
) -> None:
    for world, where in stops(begin_and_start_again(make), compose, least=8):
        check_persons(world, where)


def start_once_more(world: StopWorld) -> None:
    world.begin()
    world.campaign.deliver(COLLECT, 1)
    compose(world)


def stop_and_start(world: StopWorld) -> None:
    world.stop()
    start_once_more(world)


RACERS: dict[str, Act] = {
    "sender": send,
    "release": release,
    "compose": compose,
    "a stop, then a start": stop_and_start,
    "one more start": start_once_more,
}


@pytest.mark.parametrize("make", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize("racer", RACERS.values(), ids=RACERS)
def test_a_restarted_run_sends_each_person_one_message_whatever_runs_before_any_call_of_compose(
    make: Callable[[], StopWorld], racer: Act
) -> None:
    for world, where in each_entry(begin_and_start_again(make), compose, racer):
        check_persons(world, where)


@pytest.mark.parametrize("make", WORLDS.values(), ids=WORLDS)
def test_a_run_that_is_restarted_while_its_messages_are_cancelled_sends_each_person_one_message(
    make: Callable[[], StopWorld],
) -> None:
    for world, where in each_entry(begin_and_stop(make), send_and_release, start_and_compose):
        check_persons(world, where)
