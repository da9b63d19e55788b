"""The whole fax gateway, stopped before and after every outside call of any of its functions."""

from collections.abc import Callable

import pytest

from tests.support.faults.fax_world import HERE, OURS, THERE, FaxWorld, fated_fax
from tests.support.faults.stops import stops

NewFaxWorld = Callable[[], FaxWorld]

FAXES = (
    fated_fax("good"),
    fated_fax("busy-once", retry_count=1),
    fated_fax("throttled-once", THERE),
    fated_fax("slow", THERE),
    fated_fax("lost-answer", THERE),
    fated_fax("refused"),
    fated_fax("wrong-from", THERE, **{"from": "+12025559999"}),
)
ARRIVING = ("good", "busy-once", "throttled-once", "slow", "lost-answer")
SENT = ("sent", "Fax sent successfully")
NOT_OURS = "from: is not among this stage's fax numbers"
TOLD = {
    **{name: [SENT] for name in ARRIVING},
    "busy-once": [
        ("tmp_fail", "Failed to deliver fax (attempt 2 of 3). Fax status: busy"),
        SENT,
    ],
    "refused": [("perm_fail", "Failed to deliver fax: 21211: that is no fax number")],
    "wrong-from": [
        (
            "perm_fail",
            f"Failed to deliver fax: from: is not among this stage's fax numbers; use one of {OURS}",
        )
    ],
}


def check_faxes(world: FaxWorld, where: str) -> None:
    """Check what holds after any stop."""
    assert world.network.delivered() == dict.fromkeys(ARRIVING, 1), where
    assert set(world.network.most_at_once().values()) == {1}, where
    tries = {name: 2 if name == "busy-once" else 1 for name in ARRIVING}
    assert {name: _submitted(world, name) for name in ARRIVING} == tries, where
    assert {name: world.found(name)["status"] for name in ARRIVING} == dict.fromkeys(ARRIVING, "delivered"), (
        where
    )
    assert {name: world.found(name)["attempts"] for name in ARRIVING} == tries, where
    assert not any("error" in world.found(name) for name in ARRIVING), where
    assert {name: world.callbacks(name) for name in TOLD} == TOLD, where
    for name in TOLD:
        called_back, published = world.event_ids(name)
        assert published == called_back, f"{where}: {name}"
    assert _first_tries(world, HERE) == ["good", "busy-once"], where
    assert _first_tries(world, THERE) == ["throttled-once", "slow", "lost-answer"], where
    assert not world.fifo.dead, where
    assert not any(world.queues.dead.values()), where


def _submitted(world: FaxWorld, name: str) -> int:
    return sum(1 for call in world.network.calls if call.name == name)


def _first_tries(world: FaxWorld, line: str) -> list[str]:
    return list(dict.fromkeys(call.name for call in world.network.by_line()[line]))


def test_each_fax_arrives_once_and_its_callbacks_are_sent_wherever_a_function_stops(
    new_fax_world: NewFaxWorld,
) -> None:
    def begin() -> FaxWorld:
        world = new_fax_world()
        world.put(*FAXES)
        return world

    undisturbed = begin()
    undisturbed.settle()
    check_faxes(undisturbed, "undisturbed")
    for world, where in stops(begin, FaxWorld.settle):
        check_faxes(world, where)


def test_a_second_copy_of_every_fax_has_no_effect(new_fax_world: NewFaxWorld) -> None:
    world = new_fax_world()
    world.put(*FAXES)
    world.clock.now += 301  # beyond the queue's own memory of copies
    world.put(*FAXES)
    world.settle()
    check_faxes(world, "copies")


def test_copies_of_a_fax_with_different_retry_counts_are_sent_as_one_fax(new_fax_world: NewFaxWorld) -> None:
    world = new_fax_world()
    world.put(fated_fax("busy-once", retry_count=1), fated_fax("good", THERE, retry_count=19))
    world.clock.now += 301
    world.put(fated_fax("busy-once", retry_count=0), fated_fax("good", THERE, retry_count=0))
    world.settle()
    assert world.network.delivered() == {"busy-once": 1, "good": 1}
    assert world.callbacks("busy-once") == [
        ("tmp_fail", "Failed to deliver fax (attempt 2 of 3). Fax status: busy"),
        SENT,
    ]
    assert world.callbacks("good") == [SENT]
    assert not world.fifo.dead


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_late_copy_of_a_failed_faxs_earlier_attempt_is_not_submitted(
    new_fax_world: NewFaxWorld, attempts: int
) -> None:
    world = new_fax_world()
    world.put(fated_fax("busy"))
    world.settle()
    world.clock.now += 301
    world.put(fated_fax("busy", attempt=attempts))
    world.settle()
    assert world.found("busy")["status"] == "failed"
    assert _submitted(world, "busy") == 3
    assert [status for status, _ in world.callbacks("busy")] == ["tmp_fail", "tmp_fail", "perm_fail"]
