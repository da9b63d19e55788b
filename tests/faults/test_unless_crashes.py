"""A follow-up whose sender is stopped before and after every outside call."""

from functools import partial

import pytest

from mailroom.clock import iso
from mailroom.ledger.observer import observe
from mailroom.message.message import Key
from tests.support.faults.stops import stops
from tests.support.faults.world import Item, World, mail
from tests.support.told import ses_event

CODE = Key("code", "mail")
ENDS = {"cancelled: unless", "failed: outcome_unknown"}
"""Ends of a follow-up that is not needed. A stop between its claim and its end leaves a try whose outcome is
unknown."""


def follow_up(world: World) -> Item:
    unless = {"id": CODE.id, "event_type": CODE.event_type, "status": "delivered"}
    return mail("a", send_at=iso(world.clock.now - 60), unless=unless)


def begin(on_unknown: str, *, delivered: bool, keyed: bool) -> World:
    """Deliver the first message, and let its provider report it or not; the follow-up is in the queue."""
    world = World("hold" if on_unknown == "hold" else "resend", keyed=keyed)
    world.enqueue(mail("code"))
    world.deliver()
    if delivered:
        observe(world.ledger, [ses_event(CODE, "delivered")])
    world.enqueue(follow_up(world), mail("b"))
    world.outside.calls.clear()
    return world


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
@pytest.mark.parametrize("keyed", [False, True])
def test_a_follow_up_to_a_delivered_message_is_not_sent_wherever_send_mail_stops(
    on_unknown: str, *, keyed: bool
) -> None:
    for world, where in stops(
        partial(begin, on_unknown, delivered=True, keyed=keyed), World.deliver, least=7
    ):
        world.settle(between=world.send_events)
        assert "a" not in world.sends(), where
        assert world.end("a") in ENDS, where
        assert world.sends()["b"] <= 1 + (on_unknown == "resend"), where


@pytest.mark.parametrize("keyed", [False, True])
def test_a_follow_up_to_an_undelivered_message_is_sent_once_if_its_event_arrives_after_a_crash(
    *, keyed: bool
) -> None:
    for world, where in stops(partial(begin, "resend", delivered=False, keyed=keyed), World.deliver, least=7):
        world.send_events()
        world.settle(between=world.send_events)
        assert (world.sends()["a"], world.end("a")) == (1, "sent"), where


@pytest.mark.parametrize("keyed", [False, True])
def test_a_follow_up_is_not_submitted_again_if_the_first_message_is_delivered_after_a_crash(
    *, keyed: bool
) -> None:
    for world, where in stops(partial(begin, "resend", delivered=False, keyed=keyed), World.deliver, least=7):
        sent = world.sends().get("a", 0)
        observe(world.ledger, [ses_event(CODE, "delivered")])
        world.settle()
        assert world.sends().get("a", 0) == sent, where
        assert world.end("a") in ENDS | ({"sent"} if sent else set()), where
