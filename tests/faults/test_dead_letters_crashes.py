"""dead_letters, stopped before and after every outside call: every letter is marked and kept."""

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
from tests.support.faults.stops import each_entry, stops

NewWorld = Callable[[], DeadLettersWorld]

STUCK = [Key(f"stuck-{at}", "mail") for at in range(3)]
MARKED = [*STUCK, Key("head", "fax"), Key("other", "fax")]
UNMARKED = [Key("done", "mail"), Key("told-of", "mail"), Key("behind", "fax")]
MARGIN = 60.0
LETTERS = [f"m{at}" for at in range(1, 10)]


@pytest.fixture
def new_world() -> NewWorld:
    """Worlds with nine letters."""

    def make() -> DeadLettersWorld:
        world = DeadLettersWorld()
        put_letters(world)
        return world

    return make


def put_letters(world: DeadLettersWorld) -> None:
    for at, key in enumerate(STUCK):
        world.put(STANDARD, world.mail(key.id, trouble="no such configuration set" if at % 2 else ""))
    world.put(STANDARD, world.mail("done", done=True))
    world.put(STANDARD, "not JSON")
    world.put(FIFO, world.fax("head", "+16175551234"))
    world.put(FIFO, world.fax("behind", "+16175551234"))
    world.put(FIFO, world.fax("other", "+16175559999"))
    world.mail("told-of")
    world.put(CALLBACKS, {"webhook_id": "msg_1", "id": "told-of", "event_type": "mail", "name": "sent.1"})


def check_marks(world: DeadLettersWorld, where: str) -> None:
    """Check what holds after any stop."""
    marked = [key for key in MARKED + UNMARKED if "dead_lettered_at" in world.found(key.id, key.event_type)]
    assert marked == MARKED, where
    there = [letter.message_id for letters in world.queues.messages.values() for letter in letters]
    assert sorted(there) == sorted(LETTERS), where
    assert world.queues.hidden() == 0, where


def test_the_function_dead_letters_marks_stuck_messages_and_keeps_dead_letters_wherever_it_stops(
    new_world: NewWorld,
) -> None:
    undisturbed = new_world()
    invoke_once(undisturbed)
    check_marks(undisturbed, "undisturbed")
    for world, where in stops(new_world, DeadLettersWorld.run_pass, least=20):
        world.clock.sleep(FUNCTION_SECONDS + MARGIN)
        assert world.queues.hidden() == 0
        world.settle()
        check_marks(world, where)


def test_two_concurrent_invocations_of_dead_letters_mark_stuck_messages_and_keep_dead_letters(
    new_world: NewWorld,
) -> None:
    """The schedule's pass begins while an alarm's is at any of its calls."""
    for world, where in each_entry(new_world, invoke_once, DeadLettersWorld.run_pass):
        check_marks(world, where)


def test_dead_letters_does_not_mark_a_message_that_was_redriven_and_claimed_during_its_invocation(
    new_world: NewWorld,
) -> None:
    for world, where in each_entry(new_world, invoke_once, redrive):
        assert not any("dead_lettered_at" in world.found(id_) for id_ in world.redriven), where


def invoke_once(world: DeadLettersWorld) -> None:
    assert world.run_pass()


def redrive(world: DeadLettersWorld) -> None:
    """Redrive the letters that are visible, as an operator does; workers claim and release them."""
    world.clock.sleep(1)
    for body in world.queues.redrive(STANDARD, lambda body: body.startswith('{"id": "stuck-')):
        name = body["id"]
        world.ledger.release(world.claim(Mail(id=name, event_type="mail", to="ada@example.com")))
        world.redriven.append(name)


def test_a_redriven_message_that_becomes_a_dead_letter_again_is_marked_again(new_world: NewWorld) -> None:
    world = new_world()
    world.run_pass()
    redrive(world)
    assert world.redriven == [key.id for key in STUCK]
    assert not any("dead_lettered_at" in world.found(key.id, key.event_type) for key in STUCK)
    for name in world.redriven:
        world.put(STANDARD, {"id": name, "event_type": "mail", "to": "ada@example.com"})
    world.settle()
    assert all("dead_lettered_at" in world.found(key.id, key.event_type) for key in STUCK)
