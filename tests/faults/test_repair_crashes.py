"""`repair`, stopped before and after each of its calls, repeated, and beside live workers."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest

from mailroom.message.message import Key
from tests.support.faults import fax_world
from tests.support.faults.base import VISIBILITY
from tests.support.faults.fax_world import HERE, FaxWorld, fated_fax
from tests.support.faults.repairs import (
    OLDER_THAN,
    Here,
    Staged,
    of_fax,
    of_mail,
    scan,
    scanned,
    send_again,
    sends,
)
from tests.support.faults.stops import each_entry, stops
from tests.support.faults.world import MAIL, World, create_table, mail

pytestmark = pytest.mark.usefixtures("one_by_one")

NewWorld = Callable[..., World]
NewFaxWorld = Callable[..., FaxWorld]
STUCK = ("never-taken", "throttled-once", "reopened")
WHOLE = (*STUCK, "later", "done", "waiting")


def stranded(world: World) -> Here:
    """Mails of which each is stuck in its own way, one that is over, one that still waits in its queue, and
    one that `release` is late with."""
    later = datetime.fromtimestamp(world.clock() + 3600, UTC).isoformat()
    world.put(mail("done"), mail("throttled-once"), mail("reopened", template="unknown"))
    world.stream()
    world.deliver()
    assert world.found("throttled-once")["status"] == "sending"
    world.queues.messages[MAIL].clear()  # purged by mistake
    world.put(mail("later", send_at=later))
    world.stream()
    assert world.ledger.reopen(Key("reopened", "mail"), world.found("reopened")) == 2
    world.put(mail("reopened"), mail("never-taken"), mail("waiting"))
    world.clock.now += VISIBILITY + OLDER_THAN + 3600 + 1
    world.enqueue(mail("waiting"))
    return of_mail(world)


def stuck(new_world: NewWorld) -> Staged[World]:
    world = new_world()
    return Staged(world, stranded(world))


def check_repaired(world: World, where: str) -> None:
    assert sends(world) == dict.fromkeys(WHOLE, 1), where
    for name in WHOLE:
        assert world.end(name) == "sent", where
    assert not any(world.queues.dead.values()), where


def test_a_repair_sends_stuck_messages_once_and_does_not_send_queued_messages_twice(
    new_world: NewWorld,
) -> None:
    world = new_world()
    stage = stranded(world)
    # A message that waits in its queue cannot be distinguished from a lost one.
    assert scan(stage, world.clock.sleep) == (len(STUCK) + 1, 0)
    world.settle()
    check_repaired(world, "no stop")
    assert scan(stage, world.clock.sleep) == (0, 0)


def test_a_repair_scan_that_was_stopped_anywhere_and_runs_again_sends_each_message_once(
    new_world: NewWorld,
) -> None:
    for staged, where in stops(partial(stuck, new_world), scanned, least=8):
        assert scanned(staged) is not None, where
        staged.world.settle()
        check_repaired(staged.world, where)


def test_two_operators_who_repair_at_the_same_time_send_each_stuck_message_once(new_world: NewWorld) -> None:
    def whole(staged: Staged[World]) -> None:
        assert scanned(staged) is not None

    for staged, where in each_entry(partial(stuck, new_world), whole, whole):
        staged.world.settle()
        check_repaired(staged.world, where)


def test_repair_scans_beside_live_workers_do_not_send_a_message_twice(new_world: NewWorld) -> None:
    world = new_world()
    world.put(mail("a"), mail("throttled-once"), mail("b"))
    world.stream()
    stage = of_mail(world)

    def again() -> None:
        scan(stage, world.clock.sleep)

    again()
    world.settle(between=again)
    assert sends(world) == {"a": 1, "throttled-once": 1, "b": 1}
    assert not any(world.queues.dead.values())


def test_a_repair_scan_does_not_requeue_a_message_that_is_a_dead_letter(new_world: NewWorld) -> None:
    world = new_world()
    world.put(mail("throttled-once"))
    world.stream()
    world.deliver()
    world.queues.messages[MAIL].clear()
    world.ledger.dead_lettered(Key("throttled-once", "mail"))
    world.clock.now += 3 * 86_400
    assert scan(of_mail(world), world.clock.sleep) == (0, 0)
    assert not world.queues.messages[MAIL]


def test_a_message_whose_dead_letter_is_past_its_retention_is_requeued_and_sent_once(
    new_world: NewWorld,
) -> None:
    world = new_world()
    world.put(mail("throttled-once"))
    world.stream()
    world.deliver()
    world.queues.messages[MAIL].clear()
    world.ledger.dead_lettered(Key("throttled-once", "mail"))
    world.clock.now += 15 * 86_400
    assert scan(of_mail(world), world.clock.sleep) == (1, 0)
    world.deliver()
    assert sends(world) == {"throttled-once": 1}


def stranded_faxes(world: FaxWorld) -> Here:
    """Strand a fax whose next attempt was lost, and one that was purged from its queue while it was on the
    line; put one that waits behind them."""
    create_table(world.dynamodb, "mailbox")
    world.put(fated_fax("busy-once"))
    world.send_fax()
    world.draw_consequences()
    assert world.found("busy-once")["status"] == "retrying"
    world.queues.messages[fax_world.RETRY].clear()
    world.put(fated_fax("slow"))
    world.send_fax()
    assert "completedAt" not in world.found("slow")
    world.fifo.letters.clear()
    world.clock.now += OLDER_THAN + fax_world.VISIBILITY + fax_world.RETRY_SECONDS + 1
    world.put(fated_fax("good"))
    return of_fax(world)


FAXES = ("busy-once", "slow", "good")


def check_faxes(world: FaxWorld, where: str) -> None:
    world.settle()
    assert world.network.delivered() == dict.fromkeys(FAXES, 1), where
    assert set(world.network.most_at_once().values()) == {1}, where
    tries = [call.name for call in world.network.by_line()[HERE]]
    assert sorted(tries) == ["busy-once", "busy-once", "good", "slow"], where
    # The receiver drops what it had: it hears of each outcome once.
    assert [status for status, _ in world.callbacks("busy-once")] == ["tmp_fail", "sent"], where
    assert [status for status, _ in world.callbacks("slow")] == ["sent"], where


def test_a_repair_delivers_each_stuck_fax_once_and_alone_on_its_line(new_fax_world: NewFaxWorld) -> None:
    def begin() -> Staged[FaxWorld]:
        world = new_fax_world()
        return Staged(world, stranded_faxes(world))

    undisturbed = begin()
    assert scanned(undisturbed) == (2, 0)
    check_faxes(undisturbed.world, "undisturbed")
    for staged, where in stops(begin, scanned, least=5):
        staged.world.draw_consequences()
        assert scanned(staged) is not None, where
        check_faxes(staged.world, where)


def test_a_resend_of_stuck_and_failed_messages_that_stops_anywhere_and_is_repeated_sends_each_once(
    new_world: NewWorld,
) -> None:
    def begin() -> Staged[World]:
        staged = stuck(new_world)
        staged.world.put(mail("failed", template="unknown"))
        staged.world.stream()
        staged.world.deliver()
        staged.world.put(mail("failed"))
        return staged

    names = (*STUCK, "failed")
    assert send_again(begin().stage, *names) == (len(names), 0)
    for staged, where in stops(begin, lambda staged: send_again(staged.stage, *names), least=8):
        assert send_again(staged.stage, *names) is not None, where
        staged.world.settle()
        assert staged.world.end("failed") == "sent", where
        assert sends(staged.world) == dict.fromkeys((*WHOLE, "failed"), 1), where
