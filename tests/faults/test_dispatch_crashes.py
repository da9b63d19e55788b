"""dispatch and dispatch_scheduled, stopped at every outside call, with the stream's and queue's retries."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.support.faults.outside import Side
from tests.support.faults.world import BULK, World, mail

NewWorld = Callable[..., World]


def items(world: World) -> list[dict[str, object]]:
    """One of each way that a message can go."""
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


def run(world: World) -> None:
    """From the stream to the sender, and on through the schedules."""
    world.put(*items(world))
    world.stream()
    for body in [each.body for each in world.queues.messages.pop(BULK, [])]:
        world.enqueue(body)
    world.settle()
    world.clock.now += 86400
    world.scheduler.fire()
    world.settle()


def check(world: World, where: str) -> None:
    assert world.sends() == dict.fromkeys(("now", "later", "soon", "bulk", "last"), 1), where
    assert world.end("bad") == "failed: invalid", where
    assert world.scheduler.schedules == {}, where


def test_all_ways_without_a_stop(new_world: NewWorld) -> None:
    world = new_world()
    run(world)
    check(world, "no stop")
    assert world.found("later")["history"][0]["status"] == "sent"


@pytest.mark.parametrize("side", ["before", "after"])
def test_every_message_is_sent_once_or_refused_once_wherever_dispatch_stops(
    new_world: NewWorld, side: Side
) -> None:
    whole = new_world()
    whole.put(*items(whole))
    whole.stream()
    assert len(whole.outside.calls) >= 6
    for at in range(len(whole.outside.calls)):
        world = new_world()
        world.outside.stop = (at, side)
        run(world)
        assert world.outside.stopped_at is not None
        check(world, f"{world.outside.stopped_at} ({at})")


def come_due(new_world: NewWorld, *, taken_back: bool, late: float = 0) -> World:
    """A world in which a message's time has come, and nobody has looked at it yet."""
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


def calls_of(new_world: NewWorld, *, taken_back: bool, late: float = 0) -> int:
    """The outside calls from then on, with nothing in their way."""
    world = come_due(new_world, taken_back=taken_back, late=late)
    before = len(world.outside.calls)
    world.settle(between=world.send_events)
    return len(world.outside.calls) - before


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize(("taken_back", "least"), [(False, 6), (True, 2)])
def test_a_message_whose_time_has_come_is_sent_once_or_cancelled_wherever_dispatch_scheduled_stops(
    new_world: NewWorld, side: Side, *, taken_back: bool, least: int
) -> None:
    calls = calls_of(new_world, taken_back=taken_back)
    assert calls >= least
    for at in range(calls):
        world = come_due(new_world, taken_back=taken_back)
        world.outside.stop = (len(world.outside.calls) + at, side)
        world.settle(between=world.send_events)
        where = f"{world.outside.stopped_at} ({at})"
        assert world.outside.stopped_at is not None, where
        assert world.sends() == ({} if taken_back else {"later": 1}), where
        assert world.end("later") == ("cancelled: cancelled" if taken_back else "sent"), where


@pytest.mark.parametrize("side", ["before", "after"])
def test_what_is_gone_when_it_is_read_back_late_is_failed_once_wherever_dispatch_scheduled_stops(
    new_world: NewWorld, side: Side
) -> None:
    late = 2 * 86400
    for at in range(calls_of(new_world, taken_back=True, late=late)):
        world = come_due(new_world, taken_back=True, late=late)
        world.outside.stop = (len(world.outside.calls) + at, side)
        world.settle(between=world.send_events)
        where = f"{world.outside.stopped_at} ({at})"
        assert world.outside.stopped_at is not None, where
        assert world.sends() == {}, where
        assert world.end("later") == "failed: content_gone", where
        assert [each["status"] for each in world.found("later")["history"]] == ["failed"], where
