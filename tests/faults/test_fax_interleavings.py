"""The fax gateway under any mixture of copies, crashes, a second worker, outages and time."""

import json
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailroom.channels.fax.contract import Delivered
from tests.support.faults.fax_world import HERE, THERE, FaxWorld, fated_fax
from tests.support.faults.outside import Side

NewFaxWorld = Callable[[], FaxWorld]

LINES = {HERE: ("good", "busy-once", "lost-answer"), THERE: ("slow", "throttled-once", "good-too")}
NAMES = [name for names in LINES.values() for name in names]
FAXES = {name: fated_fax(name, line) for line, names in LINES.items() for name in names}
sides: st.SearchStrategy[Side] = st.sampled_from(("before", "after"))
steps = st.one_of(
    st.tuples(st.just("copy"), st.sampled_from(NAMES)),
    st.tuples(st.just("misplaced copy"), st.sampled_from(NAMES)),
    st.tuples(st.just("send"), st.none()),
    st.tuples(st.just("consequences"), st.none()),
    st.tuples(st.just("crash"), st.tuples(st.integers(0, 9), sides)),
    st.tuples(st.just("second worker"), st.integers(0, 9)),
    st.tuples(st.just("outage"), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.sampled_from((1, 30, 190, 700))),
)


def play(world: FaxWorld, step: str, detail: object) -> None:
    """Take one step of the mixture."""
    outside, at = world.outside, len(world.outside.calls)
    match step, detail:
        case "copy", str(name):
            world.fifo.put(_body(name), FAXES[name]["to"], f"copy {at} {world.clock()}")
        case "misplaced copy", str(name):
            world.fifo.put(_body(name), "another group", f"copy {at} {world.clock()}")
        case "crash", (int(offset), "before" | "after" as side):
            outside.stop = (at + offset, side)
            world.send_fax()
            outside.stop = None
        case "second worker", int(offset):
            outside.intrude = (at + offset, lambda: _ran(world))
            world.send_fax()
            outside.intrude = None
        case "outage", int(offset):
            outside.intrude = (at + offset, lambda: setattr(world.network, "down", True))
            world.send_fax()
            outside.intrude, world.network.down = None, False
        case "wait", int(seconds):
            world.clock.now += seconds
        case "consequences", None:
            world.draw_consequences()
            world.move_retries()
        case _:
            world.send_fax()


def _ran(world: FaxWorld) -> None:
    world.send_fax()


def _body(name: str) -> str:
    return json.dumps(FAXES[name])


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
)
@given(st.lists(steps, min_size=3, max_size=14))
def test_each_fax_arrives_once_in_order_and_alone_on_its_line_under_random_faults(
    new_fax_world: NewFaxWorld, mixture: list[tuple[str, object]]
) -> None:
    world = new_fax_world()
    world.put(*FAXES.values())
    for step, detail in mixture:
        play(world, step, detail)
    world.settle()
    assert set(world.network.most_at_once().values()) == {1}
    assert world.network.delivered() == dict.fromkeys(NAMES, 1)
    assert not world.fifo.dead
    for name in NAMES:
        assert world.found(name)["status"] == "delivered"
        assert [status for status, _ in world.callbacks(name)][-1:] == ["sent"]
    for line, names in LINES.items():
        calls = world.network.by_line()[line]
        assert tuple(dict.fromkeys(call.name for call in calls)) == names
        assert sum(isinstance(call.end, Delivered) for call in calls) == len(names)
