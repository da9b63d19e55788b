"""`repair`, stopped before and after each of its calls, run again, and run beside live workers."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from mailroom.message.message import Key
from tests.support.faults import fax_world
from tests.support.faults.fax_world import HERE, FaxWorld, fax
from tests.support.faults.outside import Side
from tests.support.faults.repairs import (
    OLDER_THAN,
    Here,
    of_fax,
    of_mail,
    repair,
    scan,
    sends,
)
from tests.support.faults.world import MAIL, VISIBILITY, World, create_table, mail

NewWorld = Callable[..., World]
NewFaxWorld = Callable[..., FaxWorld]
SIDES: tuple[Side, ...] = ("before", "after")
STUCK = ("never-taken", "later", "throttled-once", "reopened")
WHOLE = (*STUCK, "done", "waiting")


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls in the same order each time, so that each of them is stopped at."""
    monkeypatch.setattr("mailroom_ops.repair.repairs.SEGMENTS", 1)


def stranded(world: World) -> Here:
    """Mails of which each is stuck in its own way, one that is over and one that still waits in its queue."""
    later = datetime.fromtimestamp(world.clock() + 3600, UTC).isoformat()
    world.put(mail("done"), mail("throttled-once"), mail("reopened", template="unknown"))
    world.stream()
    world.deliver()
    assert world.found("throttled-once")["status"] == "sending"
    world.queues.messages[MAIL].clear()  # purged by mistake
    world.put(mail("later", send_at=later))
    world.stream()
    world.scheduler.schedules.clear()
    assert world.ledger.reopen(Key("reopened", "mail"), world.found("reopened")) == 2
    world.put(mail("reopened"), mail("never-taken"), mail("waiting"))
    world.clock.now += VISIBILITY + OLDER_THAN + 3600 + 1
    world.enqueue(mail("waiting"))
    return of_mail(world)


def check(world: World, where: str) -> None:
    assert sends(world) == dict.fromkeys(WHOLE, 1), where
    for name in WHOLE:
        assert world.end(name) == "sent", where
    assert not any(world.queues.dead.values()), where


def test_what_is_stuck_is_sent_once_and_what_waits_is_not_sent_twice(new_world: NewWorld) -> None:
    world = new_world()
    stage = stranded(world)
    # One that waits in its queue cannot be told from one that is lost.
    assert scan(stage, world.clock.sleep) == (len(STUCK) + 1, 0)
    world.settle()
    check(world, "no stop")
    assert scan(stage, world.clock.sleep) == (0, 0)


def calls_of(new_world: NewWorld) -> int:
    world = new_world()
    stage = stranded(world)
    before = len(world.outside.calls)
    scan(stage, world.clock.sleep)
    count = len(world.outside.calls) - before
    assert count >= 8
    return count


@pytest.mark.parametrize("side", SIDES)
def test_run_again_it_sends_each_once_wherever_it_was_stopped(new_world: NewWorld, side: Side) -> None:
    for at in range(calls_of(new_world)):
        world = new_world()
        stage = stranded(world)
        world.outside.stop = (len(world.outside.calls) + at, side)
        assert scan(stage, world.clock.sleep) is None
        where = f"{world.outside.stopped_at} ({at})"
        assert world.outside.stopped_at is not None
        assert scan(stage, world.clock.sleep) is not None, where
        world.settle()
        check(world, where)


def test_two_operators_at_once_send_each_once(new_world: NewWorld) -> None:
    for at in range(calls_of(new_world)):
        world = new_world()
        stage = stranded(world)

        def another(world: World = world, stage: Here = stage) -> None:
            assert scan(stage, world.clock.sleep) is not None

        world.outside.intrude = (len(world.outside.calls) + at, another)
        assert scan(stage, world.clock.sleep) is not None
        world.settle()
        check(world, f"another one before call {at}")


def test_run_over_and_over_beside_workers_that_are_alive_it_sends_nothing_twice(new_world: NewWorld) -> None:
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


def test_a_dead_letter_is_left_to_its_redrive(new_world: NewWorld) -> None:
    world = new_world()
    world.put(mail("throttled-once"))
    world.stream()
    world.deliver()
    world.queues.messages[MAIL].clear()
    assert world.ledger.dead_lettered(Key("throttled-once", "mail"))
    world.clock.now += 3 * 86_400
    assert scan(of_mail(world, {"mail-dlq": 1}), world.clock.sleep) == (0, 0)
    assert not world.queues.messages[MAIL]


@pytest.mark.parametrize(("days", "letters"), [(3, 0), (15, 1)], ids=["taken out", "past its retention"])
def test_what_outlives_its_dead_letter_is_put_back_and_sent_once(
    new_world: NewWorld, days: int, letters: int
) -> None:
    world = new_world()
    world.put(mail("throttled-once"))
    world.stream()
    world.deliver()
    world.queues.messages[MAIL].clear()
    assert world.ledger.dead_lettered(Key("throttled-once", "mail"))
    world.clock.now += days * 86_400
    stage = of_mail(world, {"mail-dlq": letters})
    assert scan(stage, world.clock.sleep) == (1, 0)
    world.deliver()
    assert sends(world) == {"throttled-once": 1}


def stranded_faxes(world: FaxWorld) -> Here:
    """A fax whose next attempt was lost, one that was purged from its queue while it was on the line, and one
    that waits behind them."""
    create_table(world.dynamodb, "mailbox")
    world.put(fax("busy-once"))
    world.send_fax()
    world.draw_consequences()
    assert world.found("busy-once")["status"] == "retrying"
    world.queues.messages[fax_world.RETRY].clear()
    world.put(fax("slow"))
    world.send_fax()
    assert "completedAt" not in world.found("slow")
    world.fifo.letters.clear()
    world.clock.now += OLDER_THAN + fax_world.VISIBILITY + fax_world.RETRY_SECONDS + 1
    world.put(fax("good"))
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


def calls_of_faxes(new_fax_world: NewFaxWorld) -> int:
    """How many calls a run makes that nobody disturbs; it puts both back."""
    world = new_fax_world()
    stage = stranded_faxes(world)
    before = len(world.outside.calls)
    assert scan(stage, world.clock.sleep) == (2, 0)
    count = len(world.outside.calls) - before
    check_faxes(world, "no stop")
    assert count >= 5
    return count


@pytest.mark.parametrize("side", SIDES)
def test_a_stuck_fax_goes_on_once_and_its_line_has_one_at_a_time(
    new_fax_world: NewFaxWorld, side: Side
) -> None:
    for at in range(calls_of_faxes(new_fax_world)):
        world = new_fax_world()
        stage = stranded_faxes(world)
        world.outside.stop = (len(world.outside.calls) + at, side)
        assert scan(stage, world.clock.sleep) is None
        where = f"{world.outside.stopped_at} ({at})"
        assert world.outside.stopped_at is not None
        world.draw_consequences()
        assert scan(stage, world.clock.sleep) is not None, where
        check_faxes(world, where)


@pytest.mark.parametrize("side", SIDES)
def test_named_messages_go_back_once_wherever_it_was_stopped(new_world: NewWorld, side: Side) -> None:
    world = new_world()
    stage = stranded(world)
    before = len(world.outside.calls)
    assert repair(stage, *STUCK) == (len(STUCK), 0)
    for at in range(len(world.outside.calls) - before):
        world = new_world()
        stage = stranded(world)
        world.outside.stop = (len(world.outside.calls) + at, side)
        assert repair(stage, *STUCK) is None
        where = f"{world.outside.stopped_at} ({at})"
        assert world.outside.stopped_at is not None
        assert repair(stage, *STUCK) is not None, where
        world.settle()
        check(world, where)
