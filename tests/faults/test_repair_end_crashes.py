"""`repair --as` beside workers that are alive, and stopped at each of its calls: what an operator said stays,
and nothing is sent again for it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest

from mailroom_ops.repair.repairs import Judged, Repairs, Word
from mailroom_ops.requeue.selection import MessageRef
from tests.support.faults.fax_world import HERE, LEASE, FaxWorld, fax
from tests.support.faults.outside import Side, Stopped
from tests.support.faults.repairs import LONGEST_FAX, of_fax, repairs_of
from tests.support.faults.world import create_table

NewFaxWorld = Callable[[], FaxWorld]
TOLD = {"sent": "sent", "failed": "perm_fail"}
both = pytest.mark.parametrize("word", ["sent", "failed"])


def followed_for_ever(new_fax_world: NewFaxWorld) -> FaxWorld:
    """A fax whose provider cannot be asked any more, and one that waits behind it."""
    world = new_fax_world()
    create_table(world.dynamodb, "mailbox")
    world.put(fax("slow"), fax("good"))
    world.outside.intrude = (3, lambda: setattr(world.network, "down", True))  # its first poll
    world.send_fax()
    world.outside.intrude = None
    assert world.found("slow")["provider_id"] == "fx-1"
    while world.clock() < world.network.calls[0].began + LONGEST_FAX + LEASE:
        again(world)
    assert "completedAt" not in world.found("slow")
    return world


def again(world: FaxWorld) -> None:
    """The next invocation for it, when its record is visible."""
    world.clock.now = max(world.clock.now, world.fifo.next_visible() or 0)
    world.send_fax()


def settled(world: FaxWorld, word: Word, name: str = "slow") -> bool | None:
    """What the command does once it is allowed to. None: it was stopped."""
    repairs = repairs_of(of_fax(world))
    with suppress(Stopped):
        return repairs.end(looked(repairs, name), word) == ""
    return None


def looked(repairs: Repairs, name: str) -> Judged:
    """What the command's look finds, once it is allowed to."""
    ((found,),) = repairs.judged(repairs.named([MessageRef(name, "fax")]))
    return found


def _settles(world: FaxWorld, word: Word, done: list[bool | None]) -> None:
    done.append(settled(world, word))


def check(world: FaxWorld, word: Word, where: str) -> None:
    """Everything runs on, the provider is there again, and what was said stays."""
    world.network.down = False
    world.settle()
    item = world.found("slow")
    assert (item["status"], item["attempts"]) == (word, 1), where
    assert [each.name for each in world.network.by_line()[HERE]] == ["slow", "good"], where
    assert set(world.network.most_at_once().values()) == {1}, where
    assert [status for status, _ in world.callbacks("slow")] == [TOLD[word]], where
    assert world.found("good")["status"] == "sent", where
    assert not world.fifo.dead, where


def calls_of(new_fax_world: NewFaxWorld) -> int:
    """How many calls one more invocation makes for it."""
    world = followed_for_ever(new_fax_world)
    before = len(world.outside.calls)
    again(world)
    return len(world.outside.calls) - before


@both
def test_a_fax_that_nobody_can_be_asked_about_is_settled_beside_the_worker_that_follows_it(
    new_fax_world: NewFaxWorld, word: Word
) -> None:
    calls = calls_of(new_fax_world)
    assert calls >= 4
    for at in range(calls):
        world = followed_for_ever(new_fax_world)
        done: list[bool | None] = []
        operator = partial(_settles, world, word, done)
        world.outside.intrude = (len(world.outside.calls) + at, operator)
        again(world)
        world.outside.intrude = None
        assert done == [True], at
        check(world, word, f"before call {at}")


@both
def test_a_provider_that_answers_again_too_late_changes_nothing_of_what_was_said(
    new_fax_world: NewFaxWorld, word: Word
) -> None:
    world = followed_for_ever(new_fax_world)

    def meanwhile() -> None:
        assert settled(world, word)
        world.network.down = False  # and the worker that holds it sees that it was delivered

    world.outside.intrude = (len(world.outside.calls) + 1, meanwhile)
    again(world)
    check(world, word, "answers again")


def stopped(new_fax_world: NewFaxWorld) -> Iterator[tuple[int, Side]]:
    world = followed_for_ever(new_fax_world)
    before = len(world.outside.calls)
    assert settled(world, "failed")
    sides: tuple[Side, ...] = ("before", "after")
    for at in range(len(world.outside.calls) - before):
        for side in sides:
            yield at, side


@both
def test_run_again_it_is_settled_once_wherever_it_was_stopped(new_fax_world: NewFaxWorld, word: Word) -> None:
    for at, side in stopped(new_fax_world):
        world = followed_for_ever(new_fax_world)
        world.outside.stop = (len(world.outside.calls) + at, side)
        assert settled(world, word) is None
        where = f"{world.outside.stopped_at} ({at})"
        world.outside.stop = None
        if "completedAt" not in world.found("slow"):
            assert settled(world, word), where
        check(world, word, where)


@both
def test_two_operators_settle_it_once(new_fax_world: NewFaxWorld, word: Word) -> None:
    world = followed_for_ever(new_fax_world)
    repairs = repairs_of(of_fax(world))
    found = looked(repairs, "slow")
    other: Word = "sent" if word == "failed" else "failed"
    assert repairs.end(found, word) == ""
    assert "has changed" in repairs.end(found, other)
    check(world, word, "two")


@both
def test_the_next_attempt_of_what_was_settled_is_never_submitted(
    new_fax_world: NewFaxWorld, word: Word
) -> None:
    world = new_fax_world()
    create_table(world.dynamodb, "mailbox")
    world.put(fax("busy-once"))
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
    world.put(fax("slow"))
    world.send_fax()
    assert not settled(world, "failed")
    world.settle()
    assert world.found("slow")["status"] == "sent"
