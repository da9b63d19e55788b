"""dispatch and dispatch_scheduled, stopped at every outside call, with the stream's and queue's retries."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.support.faults.stops import stops
from tests.support.faults.world import BULK, World, mail

NewWorld = Callable[..., World]


def items(world: World) -> list[dict[str, object]]:
    """Return one message for each way through dispatch."""
    later = datetime.fromtimestamp(world.clock() + 86400, UTC).isoformat()
    soon = datetime.fromtimestamp(world.clock() + 60, UTC).isoformat()
    return [
        mail("now"),
        mail("bad", to="nobody"),
        mail("later", send_at=later),
        mail("soon", send_at=soon),
        mail("bulk", lane="bulk"),
        mail("unknown") | {"event_type": "pigeon"},
        mail("last"),
    ]


def run_on(world: World) -> None:
    """Let the senders and the schedules do their work."""
    for body in [message.body for message in world.queues.messages.pop(BULK, [])]:
        world.enqueue(body)
    world.settle()
    world.clock.now += 86400
    world.scheduler.fire()
    world.settle()


def check(world: World, where: str) -> None:
    assert world.sends() == dict.fromkeys(("now", "later", "soon", "bulk", "last"), 1), where
    assert world.end("bad") == "failed: invalid", where
    assert world.scheduler.schedules == {}, where


def test_messages_take_all_ways_without_a_stop(new_world: NewWorld) -> None:
    world = new_world()
    world.put(*items(world))
    world.stream()
    run_on(world)
    check(world, "no stop")
    assert world.found("later")["history"][0]["status"] == "sent"


def test_every_message_is_sent_once_or_refused_once_wherever_dispatch_stops(new_world: NewWorld) -> None:
    def begin() -> World:
        world = new_world()
        world.put(*items(world))
        return world

    for world, where in stops(begin, World.stream, least=6):
        run_on(world)
        check(world, where)


def come_due(new_world: NewWorld, *, taken_back: bool, late: float = 0) -> World:
    """Make a world in which a message is due, and its schedule has just fired."""
    world = new_world()
    world.put(mail("later", send_at=datetime.fromtimestamp(world.clock() + 86400, UTC).isoformat()))
    world.stream()
    assert world.found("later")["status"] == "scheduled"
    if taken_back:
        world.take_back("later")
    world.clock.now += 86400
    world.scheduler.fire()
    world.clock.now += late
    return world


def settle(world: World) -> None:
    world.settle(between=world.send_events)


@pytest.mark.parametrize(("taken_back", "least"), [(False, 6), (True, 2)])
def test_a_message_whose_time_has_come_is_sent_once_or_cancelled_wherever_dispatch_scheduled_stops(
    new_world: NewWorld, *, taken_back: bool, least: int
) -> None:
    for world, where in stops(lambda: come_due(new_world, taken_back=taken_back), settle, least):
        assert world.sends() == ({} if taken_back else {"later": 1}), where
        assert world.end("later") == ("cancelled: cancelled" if taken_back else "sent"), where


def test_a_message_whose_content_is_gone_fails_once_wherever_dispatch_scheduled_stops(
    new_world: NewWorld,
) -> None:
    for world, where in stops(lambda: come_due(new_world, taken_back=True, late=2 * 86400), settle):
        assert world.sends() == {}, where
        assert world.end("later") == "failed: content_gone", where
        assert [entry["status"] for entry in world.found("later")["history"]] == ["failed"], where
