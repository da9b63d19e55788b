"""send_mail under any mixture of duplicates, crashes, a second worker, early, late and repeated events."""

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.faults.outside import Side
from tests.support.faults.world import MAIL, World, mail

NewWorld = Callable[..., World]

NAMES = ("a", "b", "throttled-once", "lost-answer")
sides: st.SearchStrategy[Side] = st.sampled_from(("before", "after"))
steps = st.one_of(
    st.tuples(st.just("duplicate"), st.sampled_from(NAMES)),
    st.tuples(st.just("deliver"), st.none()),
    st.tuples(st.just("crash"), st.tuples(st.integers(0, 8), sides)),
    st.tuples(st.just("intrude"), st.integers(0, 8)),
    st.tuples(st.just("events"), st.none()),
    st.tuples(st.just("wait"), st.sampled_from((1, 60, 130, 400))),
)


def play(world: World, step: str, detail: object) -> None:
    """Take one step of the mixture."""
    outside, at = world.outside, len(world.outside.calls)
    match step, detail:
        case "duplicate", str(name):
            world.enqueue(mail(name))
        case "crash", (int(offset), "before" | "after" as side):
            outside.stop = (at + offset, side)
            world.deliver()
            outside.stop = None
        case "intrude", int(offset):
            outside.intrude = (at + offset, world.deliver)
            world.deliver()
            outside.intrude = None
        case "events", None:
            world.send_events()
        case "wait", int(seconds):
            world.clock.now += seconds
        case _:
            world.deliver()


mixtures = given(st.lists(steps, min_size=3, max_size=14))
few = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)


@few
@mixtures
def test_on_unknown_hold_sends_a_message_at_most_once_and_gives_each_message_an_outcome(
    new_world: NewWorld, mixture: list[tuple[str, object]]
) -> None:
    world = new_world("hold")
    world.enqueue(*(mail(name) for name in NAMES))
    for step, detail in mixture:
        play(world, step, detail)
    world.settle()
    assert all(times == 1 for times in world.sends().values())
    for name in NAMES:
        assert world.end(name) in {"sent", "failed: outcome_unknown"}
        assert world.sends()[name] == 1 or world.end(name) != "sent"
    assert world.queues.dead[MAIL] == []


@few
@mixtures
def test_on_unknown_resend_sends_each_message_once_if_its_event_arrives_before_the_next_delivery(
    new_world: NewWorld, mixture: list[tuple[str, object]]
) -> None:
    world = new_world("resend")
    world.enqueue(*(mail(name) for name in NAMES))
    for step, detail in mixture:
        play(world, step, detail)
        world.send_events()
    world.settle(between=world.send_events)
    assert world.sends() == dict.fromkeys(NAMES, 1)
    assert {world.end(name) for name in NAMES} == {"sent"}
    assert world.queues.dead[MAIL] == []
