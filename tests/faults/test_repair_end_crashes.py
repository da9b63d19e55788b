"""`repair --as` beside live workers, and stopped at each of its calls: the operator's outcome stays, and no
message is sent again."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from mailroom_ops.repair.repairs import Judged, Repairs, Word
from mailroom_ops.shared.selected_messages import MessageRef
from tests.support.faults.fax_world import HERE, LEASE, FaxWorld, fated_fax
from tests.support.faults.outside import Stopped
from tests.support.faults.repairs import LONGEST_FAX, of_fax, repairs_of
from tests.support.faults.stops import call_numbers, each_entry, stops
from tests.support.faults.world import create_table

NewFaxWorld = Callable[[], FaxWorld]
TOLD = {"sent": "sent", "failed": "perm_fail"}
both = pytest.mark.parametrize("word", ["sent", "failed"])


def followed_for_ever(new_fax_world: NewFaxWorld) -> FaxWorld:
    """Make a world with a fax whose provider does not respond any more, and a fax that waits behind it."""
    world = new_fax_world()
    create_table(world.dynamodb, "mailbox")
    world.put(fated_fax("slow"), fated_fax("good"))
    world.outside.intrude = (3, lambda: setattr(world.network, "down", True))  # the first poll of the fax
    world.send_fax()
    world.outside.intrude = None
    assert world.found("slow")["provider_id"] == "fx-1"
    while world.clock() < world.network.calls[0].began + LONGEST_FAX + LEASE:
        invoke_when_visible(world)
    assert "completedAt" not in world.found("slow")
    return world


def invoke_when_visible(world: FaxWorld) -> None:
    """The next invocation for it, when its record is visible."""
    world.clock.now = max(world.clock.now, world.fifo.next_visible() or 0)
    world.send_fax()


def settled(world: FaxWorld, word: Word, name: str = "slow") -> bool | None:
    """Run the command, confirmed. Returns whether it settled the fax; None if it was stopped."""
    repairs = repairs_of(of_fax(world))
    with suppress(Stopped):
        return repairs.end(looked(repairs, name), word) == ""
    return None


def looked(repairs: Repairs, name: str) -> Judged:
    """Return the message as the command sees it before it writes."""
    ((found,),) = repairs.judged(repairs.keys_of([MessageRef(name, "fax")]))
    return found


def check_outcome_stays(world: FaxWorld, word: Word, where: str) -> None:
    """Let all functions run on with a provider that responds again, and check that the outcome stays."""
    world.network.down = False
    world.settle()
    item = world.found("slow")
    assert (item["status"], item["attempts"]) == (word, 1), where
    assert [each.name for each in world.network.by_line()[HERE]] == ["slow", "good"], where
    assert set(world.network.most_at_once().values()) == {1}, where
    assert [status for status, _ in world.callbacks("slow")] == [TOLD[word]], where
    assert world.found("good")["status"] == "delivered", where
    assert not world.fifo.dead, where


@both
def test_an_operator_can_settle_a_fax_whose_provider_is_down_while_a_worker_follows_it(
    new_fax_world: NewFaxWorld, word: Word
) -> None:
    begin, done = partial(followed_for_ever, new_fax_world), list[bool | None]()
    assert len(call_numbers(begin, invoke_when_visible)) >= 4
    for world, where in each_entry(
        begin, invoke_when_visible, lambda world: done.append(settled(world, word))
    ):
        assert done.pop() is True, where
        check_outcome_stays(world, word, where)


@both
def test_a_provider_that_recovers_after_an_operator_settled_a_fax_does_not_change_its_outcome(
    new_fax_world: NewFaxWorld, word: Word
) -> None:
    world = followed_for_ever(new_fax_world)

    def meanwhile() -> None:
        assert settled(world, word)
        world.network.down = False  # and the worker that holds it sees that it was delivered

    world.outside.intrude = (len(world.outside.calls) + 1, meanwhile)
    invoke_when_visible(world)
    check_outcome_stays(world, word, "answers again")


@both
def test_a_settlement_of_a_fax_that_stops_at_any_call_and_is_repeated_gives_the_fax_one_outcome(
    new_fax_world: NewFaxWorld, word: Word
) -> None:
    for world, where in stops(partial(followed_for_ever, new_fax_world), lambda world: settled(world, word)):
        if "completedAt" not in world.found("slow"):
            assert settled(world, word), where
        check_outcome_stays(world, word, where)


@both
def test_a_second_operator_cannot_settle_a_settled_fax_with_another_outcome(
    new_fax_world: NewFaxWorld, word: Word
) -> None:
    world = followed_for_ever(new_fax_world)
    repairs = repairs_of(of_fax(world))
    found = looked(repairs, "slow")
    other: Word = "sent" if word == "failed" else "failed"
    assert repairs.end(found, word) == ""
    assert "has changed" in repairs.end(found, other)
    check_outcome_stays(world, word, "two")


@both
def test_the_next_attempt_of_a_settled_fax_is_never_submitted(new_fax_world: NewFaxWorld, word: Word) -> None:
    world = new_fax_world()
    create_table(world.dynamodb, "mailbox")
    world.put(fated_fax("busy-once"))
    world.send_fax()
    world.draw_consequences()
    assert world.found("busy-once")["status"] == "retrying"
    assert settled(world, word, "busy-once")
    world.settle()
    assert [each.name for each in world.network.calls] == ["busy-once"]
    assert world.found("busy-once")["status"] == word
    assert [status for status, _ in world.callbacks("busy-once")] == ["tmp_fail", TOLD[word]]


def test_a_fax_that_may_be_on_its_line_is_not_settled(new_fax_world: NewFaxWorld) -> None:
    world = new_fax_world()
    create_table(world.dynamodb, "mailbox")
    world.put(fated_fax("slow"))
    world.send_fax()
    assert not settled(world, "failed")
    world.settle()
    assert world.found("slow")["status"] == "delivered"
