"""dispatch, stopped at every outside call, with the stream's retries."""

from collections.abc import Callable
from datetime import UTC, datetime

from tests.support.faults.stops import stops
from tests.support.faults.world import World, mail

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


def check_sends(world: World, where: str) -> None:
    assert world.sends() == dict.fromkeys(("now", "later", "soon", "bulk", "last"), 1), where
    assert world.end("bad") == "failed: invalid", where
    assert world.parts() == {}, where


def test_valid_messages_are_sent_once_and_an_invalid_message_fails_if_dispatch_runs_to_its_end(
    new_world: NewWorld,
) -> None:
    world = new_world()
    world.put(*items(world))
    world.stream()
    world.settle()
    check_sends(world, "no stop")
    assert world.found("later")["history"][0]["status"] == "sent"


def test_valid_messages_are_sent_once_and_an_invalid_message_fails_wherever_dispatch_stops(
    new_world: NewWorld,
) -> None:
    def begin() -> World:
        world = new_world()
        world.put(*items(world))
        return world

    for world, where in stops(begin, World.stream, least=4):
        world.settle()
        check_sends(world, where)
