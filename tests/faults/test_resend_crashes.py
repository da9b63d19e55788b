"""`resend`, stopped before and after each of its calls: each reopened message is sent once."""

from collections.abc import Callable
from functools import partial

import pytest

from mailroom.ledger.observer import observe
from mailroom.message.message import Key
from mailroom_ops.messages.sets import MessageResult
from tests.support.faults.base import VISIBILITY
from tests.support.faults.fax_world import FaxWorld, fated_fax
from tests.support.faults.repairs import OLDER_THAN, Staged, of_fax, of_mail, resend, scanned, sends
from tests.support.faults.stops import each_entry, stops
from tests.support.faults.world import MAIL, World, mail
from tests.support.told import ses_event

pytestmark = pytest.mark.usefixtures("one_by_one")

NewWorld = Callable[..., World]
NewFaxWorld = Callable[..., FaxWorld]
IDS = ("a", "b")


def failed_once(new_world: NewWorld) -> Staged[World]:
    """Mails that failed for a template that there was not, and are put right in the mailbox since."""
    world = new_world()
    world.put(*(mail(name, template="unknown") for name in IDS))
    world.stream()
    world.settle()
    assert [world.end(name) for name in IDS] == ["failed: invalid"] * 2
    world.put(*map(mail, IDS))
    return Staged(world, of_mail(world))


def resend_all(staged: Staged[World]) -> None:
    resend(staged.stage, *IDS)


def check_second_attempts(world: World, where: str) -> None:
    assert sends(world) == dict.fromkeys(IDS, 1), where
    for name in IDS:
        assert (world.end(name), world.found(name)["attempts"]) == ("sent", 2), where
    assert not any(world.queues.dead.values()), where


def test_a_resend_that_was_stopped_anywhere_and_runs_again_sends_each_message_once(
    new_world: NewWorld,
) -> None:
    undisturbed = failed_once(new_world)
    assert [message.result for message in resend(undisturbed.stage, *IDS)] == ["resent", "resent"]
    undisturbed.world.settle()
    check_second_attempts(undisturbed.world, "undisturbed")
    for staged, where in stops(partial(failed_once, new_world), resend_all, least=5):
        resend_all(staged)
        staged.world.settle()
        check_second_attempts(staged.world, where)


def test_a_message_that_a_crashed_resend_reopened_and_did_not_queue_is_sent_once_by_a_repair_scan(
    new_world: NewWorld,
) -> None:
    found = 0
    for staged, where in stops(partial(failed_once, new_world), resend_all):
        world = staged.world
        reopened = [name for name in IDS if "completedAt" not in world.found(name)]
        found += len(reopened)
        world.settle()
        world.clock.now += VISIBILITY + OLDER_THAN + 1
        assert scanned(staged) is not None, where
        world.settle()
        assert sends(world) == dict.fromkeys(reopened, 1), where
        failed = set(IDS) - set(reopened)
        assert {world.end(name) for name in reopened} <= {"sent"}, where
        assert {world.end(name) for name in failed} <= {"failed: invalid"}, where
    assert found


def resent_and_sent(staged: Staged[World]) -> None:
    resend_all(staged)
    staged.world.settle()


@pytest.mark.parametrize("enter", [resend_all, resent_and_sent])
def test_two_concurrent_resends_send_each_message_once_even_if_a_worker_runs_in_between(
    new_world: NewWorld, enter: Callable[[Staged[World]], None]
) -> None:
    for staged, where in each_entry(partial(failed_once, new_world), resend_all, enter):
        staged.world.settle()
        check_second_attempts(staged.world, where)


def test_a_message_that_is_proved_delivered_just_before_its_reopening_is_not_sent_again(
    new_world: NewWorld,
) -> None:
    world = new_world("hold")
    world.put(mail("lost-answer"))
    world.stream()
    world.settle()
    assert world.end("lost-answer") == "failed: outcome_unknown"
    stage = of_mail(world)

    def late() -> None:
        observe(world.ledger, [ses_event(Key("lost-answer", "mail"), "delivered")])

    world.outside.intrude = (len(world.outside.calls), late)
    (refused,) = resend(stage, "lost-answer")
    assert refused.result == "refused"
    world.settle()
    assert (world.end("lost-answer"), sends(world)) == ("delivered", {"lost-answer": 1})


def test_a_second_copy_of_a_resent_message_is_dropped(new_world: NewWorld) -> None:
    world, stage = failed_once(new_world)
    resend(stage, "a")
    copies = [each.body for each in world.queues.messages[MAIL]]
    world.settle()
    world.enqueue(*copies)
    world.settle()
    assert sends(world) == {"a": 1}


def test_a_delivered_message_is_resent_only_with_force(new_world: NewWorld) -> None:
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


def given_up(new_fax_world: NewFaxWorld) -> Staged[FaxWorld]:
    """Give a fax up after its only try."""
    world = new_fax_world(1)
    world.put(fated_fax("busy-once"))
    world.settle()
    assert world.found("busy-once")["status"] == "failed"
    return Staged(world, of_fax(world))


def test_a_failed_fax_that_is_resent_is_delivered_once_and_alone_on_its_line(
    new_fax_world: NewFaxWorld,
) -> None:
    def run(staged: Staged[FaxWorld]) -> list[MessageResult]:
        return resend(staged.stage, "busy-once", event_type="fax")

    assert [message.result for message in run(given_up(new_fax_world))] == ["resent"]
    for staged, where in stops(partial(given_up, new_fax_world), run):
        world = staged.world
        world.settle()
        run(staged)
        world.settle()
        assert world.network.delivered() == {"busy-once": 1}, where
        assert set(world.network.most_at_once().values()) == {1}, where
        stored = world.found("busy-once")
        assert (stored["status"], stored["attempts"]) == ("delivered", 2), where
