"""`resend`, stopped before and after each of its calls: what was reopened is sent once, whoever finds it."""

from collections.abc import Callable

import pytest

from mailroom.ledger.observer import observe
from mailroom.message.message import Key
from tests.support.faults.fax_world import FaxWorld, fax
from tests.support.faults.outside import Side
from tests.support.faults.repairs import OLDER_THAN, Here, of_fax, of_mail, resend, scan, sends
from tests.support.faults.world import MAIL, VISIBILITY, World, mail
from tests.support.told import told

NewWorld = Callable[..., World]
NewFaxWorld = Callable[..., FaxWorld]
IDS = ("a", "b")
SIDES: tuple[Side, ...] = ("before", "after")


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls in the same order each time, so that each of them is stopped at."""
    monkeypatch.setattr("mailroom_ops.resend.resender._WORKERS", 1)
    monkeypatch.setattr("mailroom_ops.repair.repairs.SEGMENTS", 1)


def failed_once(world: World) -> Here:
    """Mails that failed for a template that there was not, and are put right in the mailbox since."""
    world.put(*(mail(name, template="unknown") for name in IDS))
    world.stream()
    world.settle()
    assert [world.end(name) for name in IDS] == ["failed: invalid"] * 2
    world.put(*map(mail, IDS))
    return of_mail(world)


def calls_of(new_world: NewWorld) -> int:
    world = new_world()
    stage = failed_once(world)
    before = len(world.outside.calls)
    assert [each.result for each in resend(stage, *IDS)] == ["resent", "resent"]
    count = len(world.outside.calls) - before
    world.settle()
    check(world, "no stop")
    assert count >= 5
    return count


def check(world: World, where: str) -> None:
    assert sends(world) == dict.fromkeys(IDS, 1), where
    for name in IDS:
        assert (world.end(name), world.found(name)["attempts"]) == ("sent", 2), where
    assert not any(world.queues.dead.values()), where


def stopped(new_world: NewWorld, at: int, side: Side) -> tuple[World, Here]:
    world = new_world()
    stage = failed_once(world)
    world.outside.stop = (len(world.outside.calls) + at, side)
    resend(stage, *IDS)
    assert world.outside.stopped_at is not None
    return world, stage


@pytest.mark.parametrize("side", SIDES)
def test_run_again_it_sends_each_once_wherever_it_was_stopped(new_world: NewWorld, side: Side) -> None:
    for at in range(calls_of(new_world)):
        world, stage = stopped(new_world, at, side)
        resend(stage, *IDS)
        world.settle()
        check(world, f"{world.outside.stopped_at} ({at})")


@pytest.mark.parametrize("side", SIDES)
def test_what_it_reopened_and_did_not_queue_is_found_by_a_scan(new_world: NewWorld, side: Side) -> None:
    found = 0
    for at in range(calls_of(new_world)):
        world, stage = stopped(new_world, at, side)
        where = f"{world.outside.stopped_at} ({at})"
        reopened = [name for name in IDS if "completedAt" not in world.found(name)]
        found += len(reopened)
        world.settle()
        world.clock.now += VISIBILITY + OLDER_THAN + 1
        assert scan(stage, world.clock.sleep) is not None, where
        world.settle()
        assert sends(world) == dict.fromkeys(reopened, 1), where
        others = set(IDS) - set(reopened)
        assert {world.end(name) for name in reopened} <= {"sent"}, where
        assert {world.end(name) for name in others} <= {"failed: invalid"}, where
    assert found


def test_two_operators_at_once_send_each_once(new_world: NewWorld) -> None:
    for at in range(calls_of(new_world)):
        world = new_world()
        stage = failed_once(world)

        def another(stage: Here = stage) -> None:
            resend(stage, *IDS)

        world.outside.intrude = (len(world.outside.calls) + at, another)
        resend(stage, *IDS)
        world.settle()
        check(world, f"another one before call {at}")


def test_another_operator_and_a_worker_in_between_send_each_once(new_world: NewWorld) -> None:
    for at in range(calls_of(new_world)):
        world = new_world()
        stage = failed_once(world)

        def another(world: World = world, stage: Here = stage) -> None:
            resend(stage, *IDS)
            world.settle()

        world.outside.intrude = (len(world.outside.calls) + at, another)
        resend(stage, *IDS)
        world.settle()
        check(world, f"another one and a worker before call {at}")


def test_what_is_proved_delivered_just_before_its_reopening_is_not_sent_again(new_world: NewWorld) -> None:
    world = new_world("hold")
    world.put(mail("lost-answer"))
    world.stream()
    world.settle()
    assert world.end("lost-answer") == "failed: outcome_unknown"
    stage = of_mail(world)

    def late() -> None:
        observe(world.ledger, [told(Key("lost-answer", "mail"), "delivered")])

    world.outside.intrude = (len(world.outside.calls), late)
    (refused,) = resend(stage, "lost-answer")
    assert refused.result == "refused"
    world.settle()
    assert (world.end("lost-answer"), sends(world)) == ("delivered", {"lost-answer": 1})


def test_a_copy_too_many_is_dropped(new_world: NewWorld) -> None:
    world = new_world()
    stage = failed_once(world)
    resend(stage, "a")
    copies = [each.body for each in world.queues.messages[MAIL]]
    world.settle()
    world.enqueue(*copies)
    world.settle()
    assert sends(world) == {"a": 1}


def test_what_was_delivered_is_left_alone_without_force(new_world: NewWorld) -> None:
    world = new_world()
    world.put(mail("a"))
    world.stream()
    world.settle()
    (refused,) = resend(of_mail(world), "a")
    assert refused.result == "refused"
    assert "--force" in refused.why
    world.settle()
    assert sends(world) == {"a": 1}
    (forced,) = resend(of_mail(world), "a", force=True)
    assert (forced.result, forced.may_arrive_twice) == ("resent", True)
    world.settle()
    assert sends(world) == {"a": 2}


def given_up(new_fax_world: NewFaxWorld) -> tuple[FaxWorld, Here]:
    """A fax that was given up after its only try."""
    world = new_fax_world(1)
    world.put(fax("busy-once"))
    world.settle()
    assert world.found("busy-once")["status"] == "failed"
    return world, of_fax(world)


def calls_of_a_fax(new_fax_world: NewFaxWorld) -> int:
    world, stage = given_up(new_fax_world)
    before = len(world.outside.calls)
    assert [each.result for each in resend(stage, "busy-once", event_type="fax")] == ["resent"]
    count = len(world.outside.calls) - before
    assert count >= 1
    return count


@pytest.mark.parametrize("side", SIDES)
def test_a_fax_that_was_given_up_is_faxed_once_more_and_its_line_has_one_at_a_time(
    new_fax_world: NewFaxWorld, side: Side
) -> None:
    for at in range(calls_of_a_fax(new_fax_world)):
        world, stage = given_up(new_fax_world)
        world.outside.stop = (len(world.outside.calls) + at, side)
        assert resend(stage, "busy-once", event_type="fax") == []
        where = f"{world.outside.stopped_at} ({at})"
        assert world.outside.stopped_at is not None
        world.settle()
        resend(stage, "busy-once", event_type="fax")
        world.settle()
        assert world.network.delivered() == {"busy-once": 1}, where
        assert set(world.network.most_at_once().values()) == {1}, where
        found = world.found("busy-once")
        assert (found["status"], found["attempts"]) == ("sent", 2), where
