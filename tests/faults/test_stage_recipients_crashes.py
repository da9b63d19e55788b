"""A restricted stage: wherever a sender stops and however its settings change, no other recipient gets a
message, and a redirected message goes out once."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.faults.changes import each_change
from tests.support.faults.sms_and_push_world import (
    ENDPOINT,
    HERE,
    SMS,
    THERE,
    NewWorld,
    PeopleWorld,
    fated_push,
    fated_sms,
)
from tests.support.faults.stops import stops
from tests.support.faults.world import World, mail

TESTERS, PHONE, OTHER_PHONE = "testers@example.org", "+12025550199", "+12025550177"
MAILS = (
    mail("a"),
    mail("ours", email="ada@corp.example"),
    mail("b", email=["b@example.com", "c@corp.example"]),
    mail("a"),
)
TEXTS = (
    fated_sms("a"),
    fated_sms("throttled-once"),
    fated_sms("lost-answer"),
    fated_sms("landline", THERE),
    fated_sms("ours", PHONE),
)
REDIRECTED = {"recipients_only": ["corp.example"], "redirect_to": TESTERS}
REFUSED = {"recipients_only": ["corp.example"]}
IN_DOUBT = ("after send_email", "before update_item")


def mailing(new_world: Callable[..., World], reachable: dict[str, Any]) -> Callable[[], World]:
    def begun() -> World:
        world = new_world("resend")
        world.reachable = reachable
        world.enqueue(*MAILS)
        return world

    return begun


def reached(world: World) -> set[str]:
    """Return all addresses of the mails that SES accepted."""
    return {each for sent in world.ses.accepted for some in sent["Destination"].values() for each in some}


def test_each_mail_goes_to_an_allowed_recipient_or_the_redirect_address_wherever_send_mail_stops(
    new_world: Callable[..., World],
) -> None:
    for world, where in stops(mailing(new_world, REDIRECTED), World.settle):
        assert reached(world) == {TESTERS, "ada@corp.example"}, where
        assert {world.end(name) for name in ("a", "b", "ours")} == {"sent"}, where
        assert sum(world.sends().values()) <= (4 if where.startswith(IN_DOUBT) else 3), where
        to = [world.found(name).get("redirected_to") for name in ("a", "b", "ours")]
        assert to == [TESTERS, TESTERS, None], where


def test_a_mail_does_not_go_to_a_recipient_outside_recipients_only_wherever_send_mail_stops(
    new_world: Callable[..., World],
) -> None:
    for world, where in stops(mailing(new_world, REFUSED), World.settle):
        assert reached(world) <= {"c@corp.example", "ada@corp.example"}, where
        # After a crash behind the claim, the text may have been sent.
        assert world.end("a") in {"suppressed: not_allowed_here", "failed: outcome_unknown"}, where
        assert world.end("ours") == world.end("b") == "sent", where
        assert world.found("b")["recipients"]["b@example.com"]["status"] == "suppressed", where


def texting(new_world: NewWorld, **settings: Any) -> Callable[[], PeopleWorld]:
    def begun() -> PeopleWorld:
        world = new_world()
        world.changed |= {"recipients_only": [], **settings}
        world.enqueue(*TEXTS)
        return world

    return begun


def test_each_sms_message_is_sent_once_to_the_redirect_number_wherever_a_function_stops(
    new_people_world: NewWorld,
) -> None:
    for world, where in stops(texting(new_people_world, redirect_to=PHONE), PeopleWorld.settle):
        assert world.sends() == {each["id"]: 1 for each in TEXTS}, where
        assert {request.to for _, request, _ in world.carrier.accepted} == {PHONE}, where
        assert world.listed() == [], where
        assert world.found("landline")["status"] == "undelivered", where
        for each in TEXTS:
            found = world.found(each["id"])
            moved = None if each["id"] == "ours" else PHONE
            assert (found["to"], found["line"], found.get("redirected_to")) == (each["to"], PHONE, moved)


@pytest.mark.parametrize("after", [{"redirect_to": OTHER_PHONE}, {"redirect_to": ""}])
def test_an_sms_message_that_may_have_been_redirected_is_not_sent_again_to_a_new_redirect_number(
    new_people_world: NewWorld, after: dict[str, Any]
) -> None:
    texts = (fated_sms("silent-a"), fated_sms("lost-answer-silent"))

    def begun() -> PeopleWorld:
        world = new_people_world()
        world.changed |= {"on_unknown": "hold", "recipients_only": [], "redirect_to": PHONE}
        world.enqueue(*texts)
        return world

    for world, where in each_change(begun, after):
        assert max(world.sends().values(), default=0) <= 1, where
        assert HERE not in {request.to for _, request, _ in world.carrier.accepted}, where
        assert not world.queues.dead[SMS], where
        assert all("completedAt" in world.found(each["id"]) for each in texts), where


def test_each_push_goes_to_the_redirect_endpoint_wherever_send_push_stops(new_people_world: NewWorld) -> None:
    target = f"{ENDPOINT}testers"

    def begun() -> PeopleWorld:
        world = new_people_world()
        world.push_changed = {"recipients_only": [], "redirect_to": target}
        world.enqueue(fated_push("p"), fated_push("disabled"), fated_push("p"))
        return world

    for world, where in stops(begun, PeopleWorld.settle):
        assert {each["TargetArn"] for each in world.sns.published} == {target}, where
        assert {world.found(name, "push")["status"] for name in ("p", "disabled")} == {"sent"}, where
        assert world.listed() == [], where
