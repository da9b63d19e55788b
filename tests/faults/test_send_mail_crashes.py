"""send_mail, stopped before and after every outside call, then redelivered as the queue would."""

import shutil
from collections.abc import Callable, Container, Iterator
from pathlib import Path

import pytest

from mailroom.ledger.status_reader import may_have_arrived_twice
from tests.support.faults.resend_mail import KEY_SECONDS
from tests.support.faults.stops import stops
from tests.support.faults.world import MAIL, TEMPLATES, World, mail

NewWorld = Callable[..., World]

GOOD = ("a", "b", "c", "d", "throttled-once")
UNSENDABLE = {"no-name": "invalid", "rejected": "rejected"}
BATCH = (
    mail("a"),
    mail("no-name", first_name=None) | {"template": "unknown"},
    "not json",
    mail("throttled-once"),
    mail("rejected"),
    mail("b"),
    mail("a"),
    mail("c"),
    mail("d"),
)
IN_DOUBT = {"after send_email", "before update_item"}
"""Places between SES's acceptance and the record: here alone a message can be sent twice, by `resend`."""


def twice_by_ledger(world: World) -> set[str]:
    """Return the messages that may have arrived twice, by the ledger."""
    return {name for name in GOOD if may_have_arrived_twice(world.found(name))}


def each_stop_of_mail(
    new_world: NewWorld, on_unknown: str, *, keyed: bool = False
) -> Iterator[tuple[World, str, frozenset[str]]]:
    """Yield a world for each place to stop at, and the messages that cannot be sent and whose outcome is
    unknown by then. The batch of `hold` has the other order."""

    def begin() -> World:
        world = new_world(on_unknown, keyed=keyed)
        world.enqueue(*(BATCH if on_unknown == "resend" else BATCH[::-1]))
        return world

    for world, where in stops(begin, World.deliver, least=16):
        yield world, where, frozenset(name for name in UNSENDABLE if is_begun(world, name))


def is_begun(world: World, name: str) -> bool:
    """Whether a worker has claimed the message and left no outcome."""
    item = world.found(name)
    return "startedAt" in item and "completedAt" not in item


def check_ends(world: World, where: str, begun: Container[str]) -> None:
    """Check that a message which cannot be sent ends with its reason; in doubt, its outcome is unknown."""
    for name, reason in UNSENDABLE.items():
        assert world.end(name) == f"failed: {'outcome_unknown' if name in begun else reason}", where


def check_neighbours(world: World, where: str, begun: Container[str] = ()) -> None:
    """Check what holds after any stop: no message is lost or blocked, and failures have their reason."""
    check_ends(world, where, begun)
    assert [each.body for each in world.queues.dead[MAIL]] == ["not json"], where
    assert world.queues.next_visible() is None, where


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_a_mail_is_not_sent_twice_wherever_send_mail_crashes_if_the_providers_event_arrives(
    new_world: NewWorld, on_unknown: str
) -> None:
    for world, where, begun in each_stop_of_mail(new_world, on_unknown):
        world.send_events()
        world.settle(between=world.send_events)
        doubtful = {name for name in GOOD if world.end(name) != "sent"}
        # Without a submit no event arrives: `hold` gives up messages in doubt, and sends none of them twice.
        assert len(doubtful) <= (on_unknown == "hold"), where
        assert world.sends() == {name: 1 for name in GOOD if name not in doubtful}, where
        assert all(world.end(name) == "failed: outcome_unknown" for name in doubtful), where
        check_neighbours(world, where, begun)


def test_on_unknown_resend_repeats_at_most_one_accepted_and_unrecorded_mail_if_events_are_missing(
    new_world: NewWorld,
) -> None:
    for world, where, begun in each_stop_of_mail(new_world, "resend"):
        world.settle()
        assert {world.end(name) for name in GOOD} == {"sent"}, where
        doubled = [name for name, times in world.sends().items() if times > 1]
        assert len(doubled) <= (where.partition(" (")[0] in IN_DOUBT), where
        assert set(doubled) <= twice_by_ledger(world), where
        assert set(world.sends()) == set(GOOD), where
        assert max(world.sends().values()) <= 2, where
        check_neighbours(world, where, begun)


def test_on_unknown_hold_sends_a_mail_at_most_once_and_records_unknown_outcomes_without_events(
    new_world: NewWorld,
) -> None:
    held = 0
    for world, where, begun in each_stop_of_mail(new_world, "hold"):
        world.settle()
        assert max(world.sends().values()) == 1, where
        assert not twice_by_ledger(world), where
        for name in GOOD:
            assert world.end(name) in {"sent", "failed: outcome_unknown"}, where
            held += world.end(name) == "failed: outcome_unknown"
        check_neighbours(world, where, begun)
    assert held > 0


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_a_provider_with_idempotency_keys_sends_each_mail_once_wherever_the_sender_crashes(
    new_world: NewWorld, on_unknown: str
) -> None:
    for world, where, begun in each_stop_of_mail(new_world, on_unknown, keyed=True):
        world.settle()
        assert world.sends() == dict.fromkeys(GOOD, 1), where
        assert {world.end(name) for name in GOOD} == {"sent"}, where
        assert not twice_by_ledger(world), where
        check_ends(world, where, begun)


@pytest.mark.parametrize("keyed", [False, True])
def test_send_mail_writes_the_ledger_twice_for_each_mail_whichever_provider_sends_it(
    new_world: NewWorld, *, keyed: bool
) -> None:
    world = new_world(keyed=keyed)
    world.enqueue(mail("a"))
    world.deliver()
    submit = "submit" if keyed else "send_email"
    assert world.outside.calls == ["batch_get_item", "update_item", submit, "update_item"]


def test_a_mail_with_an_unknown_outcome_is_held_after_its_idempotency_key_has_expired(
    new_world: NewWorld,
) -> None:
    world = new_world("hold", keyed=True)
    world.enqueue(mail("lost-answer"))
    world.deliver()
    world.clock.now += KEY_SECONDS
    world.settle()
    assert (world.sends(), world.end("lost-answer")) == ({"lost-answer": 1}, "failed: outcome_unknown")


def test_a_mail_with_an_unknown_outcome_is_not_sent_again_if_its_template_has_changed(
    new_world: NewWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_world("resend", keyed=True)
    world.enqueue(mail("lost-answer"))
    world.deliver()
    shutil.copytree(TEMPLATES, tmp_path / "mail")
    (tmp_path / "mail" / "default" / "body.txt").write_text("Another text.")
    monkeypatch.setattr("tests.support.faults.world.TEMPLATES", tmp_path / "mail")
    world.settle()
    assert (world.sends(), world.end("lost-answer")) == ({"lost-answer": 1}, "failed: outcome_unknown")


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_each_mail_is_sent_once_if_a_second_worker_takes_the_same_messages_at_any_call(
    new_world: NewWorld, on_unknown: str
) -> None:
    whole = new_world(on_unknown)
    whole.enqueue(*BATCH)
    whole.deliver()
    for at in range(len(whole.outside.calls)):
        world = new_world(on_unknown)
        world.enqueue(*BATCH)
        records = world.queues.receive(MAIL)
        world.enqueue(*(each for each in BATCH if isinstance(each, dict)))
        world.outside.intrude = (at, world.deliver)
        response = world.worker().handle({"Records": records}, lambda: 60_000)
        world.queues.settle(MAIL, records, response)
        world.settle()
        assert world.sends() == dict.fromkeys(GOOD, 1), at
        assert {world.end(name) for name in GOOD} == {"sent"}, at
        check_neighbours(world, str(at))


def test_an_event_settles_a_mail_whose_response_was_lost(new_world: NewWorld) -> None:
    world = new_world("resend")
    world.enqueue(mail("lost-answer"))
    world.deliver()
    world.send_events()
    world.settle()
    assert world.sends() == {"lost-answer": 1}
    assert world.end("lost-answer") == "sent"


def test_a_mail_whose_sender_crashes_again_and_again_becomes_a_dead_letter_and_is_not_sent(
    new_world: NewWorld,
) -> None:
    world = new_world("resend")
    world.enqueue(mail("a"))
    for _ in range(100):
        world.outside.stop = (len(world.outside.calls), "after")
        due = world.queues.next_visible()
        if due is None:
            break
        world.clock.now = max(world.clock.now, due)
        world.deliver()
    assert [each.body[:9] for each in world.queues.dead[MAIL]] == ['{"id": "a']
    assert world.sends() == {}
    assert "completedAt" not in world.found("a")
