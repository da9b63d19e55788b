"""dead_letters, stopped before and after every outside call: every letter is told of, marked and left there.

A stop between the log line and its memory lets the line come twice. That is the side to err on: a letter that
is remembered and was not told of would never be told of.
"""

from collections import Counter
from collections.abc import Callable

import pytest

from mailroom.channels.mail.contract import Mail
from mailroom.message.message import Key
from tests.support.faults.dead_letters_world import (
    CALLBACKS,
    FIFO,
    FUNCTION_SECONDS,
    STANDARD,
    DeadLettersWorld,
)
from tests.support.faults.outside import Side

NewWorld = Callable[[], DeadLettersWorld]
SIDES: tuple[Side, ...] = ("before", "after")

STUCK = [Key(f"stuck-{at}", "mail") for at in range(3)]
MARKED = [*STUCK, Key("head", "fax"), Key("other", "fax")]
UNMARKED = [Key("done", "mail"), Key("told-of", "mail"), Key("behind", "fax")]
MARGIN = 60.0
READS_THE_LOG = True
LETTERS = [f"m{at}" for at in range(1, 10)]
BEHIND = "m7"
"""The second fax to a number: its group's head hides it."""


@pytest.fixture
def new_world() -> NewWorld:
    """Worlds with nine letters."""

    def make() -> DeadLettersWorld:
        world = DeadLettersWorld()
        put(world)
        return world

    return make


def put(world: DeadLettersWorld) -> None:
    for at, key in enumerate(STUCK):
        world.put(STANDARD, world.mail(key.id, trouble="no such configuration set" if at % 2 else ""))
    world.put(STANDARD, world.mail("done", done=True))
    world.put(STANDARD, "not JSON")
    world.put(FIFO, world.fax("head", "+16175551234"))
    world.put(FIFO, world.fax("behind", "+16175551234"))
    world.put(FIFO, world.fax("other", "+16175559999"))
    world.mail("told-of")
    world.put(CALLBACKS, {"webhook_id": "msg_1", "id": "told-of", "event_type": "mail", "name": "sent.1"})


def check(world: DeadLettersWorld, where: str, *, twice: int = 0) -> None:
    """What must hold whatever happened."""
    told = world.told()
    expected = set(LETTERS) - {BEHIND}
    assert set(told) == expected, where
    assert sum(told.values()) == len(expected) + twice, where
    assert world.remembered() == expected, where
    marked = [key for key in MARKED + UNMARKED if "dead_lettered_at" in world.found(key)]
    assert marked == MARKED, where
    there = [letter.message_id for letters in world.queues.messages.values() for letter in letters]
    assert sorted(there) == sorted(LETTERS), where
    assert world.queues.hidden() == 0, where


def calls(new_world: NewWorld) -> list[str]:
    """What an undisturbed pass asks of the world."""
    world = new_world()
    assert world.invoke()
    check(world, "undisturbed")
    return list(world.outside.calls)


def test_every_letter_is_told_of_marked_and_left_wherever_the_pass_stops(new_world: NewWorld) -> None:
    count = len(calls(new_world))
    assert count > 30
    for at in range(count):
        for side in SIDES:
            world = new_world()
            world.outside.stop = (at, side)
            assert not world.invoke()
            world.clock.sleep(FUNCTION_SECONDS + MARGIN)
            assert world.queues.hidden() == 0
            world.settle()
            stopped = world.outside.stopped_at
            check(world, f"{stopped} ({at})", twice=1 if stopped == "before put_item" else 0)


def test_two_passes_at_once_tell_of_each_letter_once(new_world: NewWorld) -> None:
    """The schedule's begins while an alarm's is at any of its calls."""
    for at in range(len(calls(new_world))):
        world = new_world()
        world.outside.intrude = (at, lambda world=world: world.invoke())
        assert world.invoke()
        check(world, f"beside another pass at call {at}")


def test_what_is_redriven_during_a_pass_is_not_marked_after_its_worker_has_claimed_it(
    new_world: NewWorld,
) -> None:
    for at in range(len(calls(new_world))):
        world = new_world()
        redriven: list[str] = []
        world.outside.intrude = (at, lambda world=world, to=redriven: redrive(world, to))
        assert world.invoke()
        marked = [each for each in redriven if "dead_lettered_at" in world.found(Key(each, "mail"))]
        assert marked == [], at


def redrive(world: DeadLettersWorld, redriven: list[str]) -> None:
    """An operator redrives what is visible, and workers claim it and give it back."""
    world.clock.sleep(1)
    for body in world.queues.redrive(STANDARD, lambda body: body.startswith('{"id": "stuck-')):
        name = body["id"]
        world.ledger.release(world.claim(Mail(id=name, event_type="mail", to="ada@example.com")))
        redriven.append(name)


def test_a_letter_that_died_again_is_told_of_again_and_marked_again(new_world: NewWorld) -> None:
    world = new_world()
    world.invoke()
    redriven: list[str] = []
    redrive(world, redriven)
    assert redriven == [key.id for key in STUCK]
    assert not any("dead_lettered_at" in world.found(key) for key in STUCK)
    for name in redriven:
        world.put(STANDARD, {"id": name, "event_type": "mail", "to": "ada@example.com"})
    before = world.told()
    world.settle()
    assert Counter((world.told() - before).values()) == {1: len(STUCK)}
    assert all("dead_lettered_at" in world.found(key) for key in STUCK)
