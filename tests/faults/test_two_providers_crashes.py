"""A channel with two providers: every sender, stopped before and after every outside call, while the first
provider fails in every way, and then works again."""

from collections.abc import Callable

import pytest

from mailroom.environment import OtherProvider
from mailroom.ledger.status_reader import may_have_arrived_twice
from tests.support.faults.outside import Trouble
from tests.support.faults.sms_and_push_world import STOPPED, PeopleWorld, fated_sms
from tests.support.faults.stops import stops
from tests.support.faults.world import FALLBACK, MAIL, OnUnknown, World, mail

NewWorld = Callable[..., World]
NAMES = ("a", "b", "c", "d", "e")
OUTAGE_SECONDS = 60
FIRST = pytest.mark.parametrize("keyed", [False, True], ids=["SES first", "Resend first"])


def begun(new_world: NewWorld, trouble: Trouble | None, on_unknown: OnUnknown, *, keyed: bool) -> World:
    """Return a world whose first provider fails."""
    world = new_world(on_unknown, keyed=keyed, fallback=True)
    world.enqueue(*map(mail, NAMES))
    fail(world, trouble)
    return world


def fail(world: World, trouble: Trouble | None) -> None:
    """Let the first provider of a world fail, or work again."""
    first = world.resend if world._keyed else world.ses
    assert first is not None
    first.trouble = trouble


def through_the_outage(world: World) -> None:
    """Deliver for as long as the first provider fails."""
    world.settle(until=world.clock.now + OUTAGE_SECONDS)


def recover(world: World) -> None:
    """Let the first provider work again, and deliver everything."""
    fail(world, None)
    world.settle()


@pytest.mark.parametrize(("keyed", "trouble"), [(False, "down"), (True, "throttles")])
def test_a_crash_while_the_first_provider_fails_sends_no_mail_twice_and_leaves_at_most_one_unsent(
    new_world: NewWorld, trouble: Trouble, *, keyed: bool
) -> None:
    for world, where in stops(
        lambda: begun(new_world, trouble, "hold", keyed=keyed), through_the_outage, least=30
    ):
        recover(world)
        ends = {name: world.end(name) for name in NAMES}
        # SES lacks idempotency keys: `hold` gives up the mail whose sender crashed around its submit.
        assert sum(end != "sent" for end in ends.values()) <= 1, where
        assert max(world.sends().values()) == 1, where
        assert {name for name in NAMES if ends[name] == "sent"} <= world.sends().keys(), where
        assert not world.queues.dead, where


@FIRST
def test_a_mail_that_the_first_provider_may_have_accepted_does_not_go_to_the_fallback_provider(
    new_world: NewWorld, *, keyed: bool
) -> None:
    for world, where in stops(
        lambda: begun(new_world, "loses answers", "hold", keyed=keyed), through_the_outage, least=10
    ):
        recover(world)
        assert max(world.sends().values()) == 1, where
        assert {world.found(name).get("provider") for name in NAMES} <= {
            None,
            "resend" if keyed else "ses",
        }, where


@FIRST
def test_a_mail_that_the_fallback_provider_may_have_accepted_does_not_go_back_to_the_first_one(
    new_world: NewWorld, *, keyed: bool
) -> None:
    world = begun(new_world, "down", "resend", keyed=keyed)
    second = world.ses if keyed else world.resend
    assert second is not None
    second.trouble = "loses answers"
    world.settle(until=world.clock.now + OUTAGE_SECONDS)
    assert len(second.accepted) == len(NAMES)
    fail(world, None)
    second.trouble = "down"
    # A copy of each mail comes to the first provider, as after a repair.
    world.enqueue(*map(mail, NAMES))
    world.settle(until=world.clock.now + 3_000)
    assert world.sends() == dict.fromkeys(NAMES, 1)
    assert all("completedAt" not in world.found(name) for name in NAMES)


@pytest.mark.parametrize(("keyed", "on_unknown"), [(False, "resend"), (True, "hold")])
def test_a_mail_that_a_crashed_fallback_sender_had_claimed_goes_to_the_provider_of_its_first_try(
    new_world: NewWorld, on_unknown: OnUnknown, *, keyed: bool
) -> None:
    """The first provider may have the mail. A copy of it comes to the fallback's sender, which claims it and
    dies. Resend can then settle the first try by its key; SES sends it again, as `resend` says."""

    def begin() -> World:
        world = begun(new_world, "loses answers", on_unknown, keyed=keyed)
        world.deliver()
        fail(world, None)
        world.clock.now += 500
        world.queues.messages.clear()
        world.enqueue(*map(mail, NAMES), url=FALLBACK)
        return world

    for world, where in stops(begin, lambda world: world.deliver(FALLBACK), least=4):
        world.settle()
        assert {world.end(name) for name in NAMES} == {"sent"}, where
        assert {world.found(name)["provider"] for name in NAMES} == {"resend" if keyed else "ses"}, where
        assert set(world.sends().values()) == {1 if keyed else 2}, where
        assert {may_have_arrived_twice(world.found(name)) for name in NAMES} == {not keyed}, where


def test_while_the_first_provider_works_each_mail_takes_two_writes_of_the_ledger(
    new_world: NewWorld,
) -> None:
    world = new_world(fallback=True)
    world.enqueue(mail("a"))
    world.deliver()
    assert world.outside.calls == ["batch_get_item", "update_item", "send_email", "update_item"]
    assert world.found("a")["provider"] == "ses"


def test_a_mail_that_is_rejected_for_its_own_fault_does_not_go_to_the_fallback(new_world: NewWorld) -> None:
    world = new_world(fallback=True)
    world.enqueue(mail("rejected"))
    world.settle()
    assert world.end("rejected") == "failed: rejected"
    assert world.resend is not None
    assert not world.resend.accepted


@pytest.mark.parametrize(("when_day_used_up", "provider"), [(True, "resend"), (False, "ses")])
def test_mails_beyond_the_first_providers_daily_quota_go_to_the_fallback_or_wait_as_configured(
    new_world: NewWorld, provider: str, *, when_day_used_up: bool
) -> None:
    world = begun(new_world, "day used up", "resend", keyed=False)
    world.when_day_used_up = when_day_used_up
    world.settle(until=world.clock.now + OUTAGE_SECONDS)
    recover(world)
    assert {world.found(name)["provider"] for name in NAMES} == {provider}
    assert world.sends() == dict.fromkeys(NAMES, 1)


def test_a_mail_stays_at_the_first_provider_for_a_few_tries_and_is_sent_once_if_both_queues_have_it(
    new_world: NewWorld,
) -> None:
    world = begun(new_world, "throttles", "resend", keyed=False)
    world.settle(until=world.clock.now + 4)
    assert not world.queues.messages[FALLBACK]
    world.enqueue(*map(mail, NAMES), url=FALLBACK)
    fail(world, None)
    world.settle()
    assert world.sends() == dict.fromkeys(NAMES, 1)
    assert not world.queues.messages[MAIL]


@pytest.mark.parametrize(("one", "other"), [("aws", "twilio"), ("twilio", "aws")])
def test_a_person_who_opted_out_at_one_sms_provider_does_not_get_sms_from_the_other_provider(
    new_people_world: Callable[[], PeopleWorld], one: str, other: str
) -> None:
    world = new_people_world()
    for name, provider, second in (("opted-out", one, other), ("later", other, one)):
        world.changed = {
            "sms_provider": provider,
            "other_provider": OtherProvider(name=second, queue_url=FALLBACK, after_tries=1),
        }
        world.enqueue(fated_sms(name, STOPPED))
        world.settle()
        assert world.found(name)["status"] == "suppressed"
    assert not world.sends()
    assert not world.queues.messages[FALLBACK], "an opt-out does not move"
