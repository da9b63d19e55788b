"""send_sms, send_push and feedback, stopped before and after every outside call, then left to themselves."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.bodies import keyword_text
from tests.support.faults.sms_and_push_world import (
    ENDPOINT,
    FEEDBACK,
    PUSH,
    SMS,
    STOPPED,
    THERE,
    Item,
    NewWorld,
    PeopleWorld,
    fated_push,
    fated_sms,
)
from tests.support.faults.stops import stops

BACK, AWAY = "+16175550002", "+16175550003"
TWINS = ("twin", "silent-twin")
TEXTS: tuple[Item | str, ...] = (
    fated_sms("a"),
    fated_sms("refused"),
    "not json",
    *(fated_sms(name, text="Your table is ready") for name in TWINS),
    fated_sms("throttled-once"),
    fated_sms("lost-answer"),
    fated_sms("landline", THERE),
    fated_sms("opted-out", STOPPED),
    # Out of order: of the first number START is the later one, of the second STOP.
    *(keyword_text("start", number=BACK, at=2000), keyword_text("stop", number=BACK, at=1000)),
    *(
        keyword_text("stop", number=AWAY, at=2000),
        keyword_text("start", number=AWAY, at=1000),
        keyword_text("stop", number=AWAY),
    ),
)
PUSHES = (
    fated_push("p"),
    fated_push("disabled"),
    fated_push("throttled-once"),
    fated_push("lost-answer"),
    fated_push("p"),
    fated_push("q"),
)
ENDS = {
    **dict.fromkeys(("a", "twin", "throttled-once", "lost-answer"), "delivered"),
    "silent-twin": "sent",
    "refused": "failed",
    "landline": "undelivered",
    "opted-out": "suppressed",
}
PUSH_ENDS = {
    **{name: {"sent"} for name in ("p", "q", "throttled-once", "lost-answer")},
    # If the sender stopped between mark and end, the next delivery finds the endpoint on the list.
    "disabled": {"failed", "suppressed"},
}
IN_DOUBT = ("after publish", "before update_item")
"""Places between SNS's acceptance and the record: here alone a push goes out twice, and replaces itself."""


def each_stop(new_world: NewWorld, *items: Any) -> Iterator[tuple[PeopleWorld, str]]:
    """Yield a world for each place to stop at, settled after its stop."""

    def begin() -> PeopleWorld:
        world = new_world()
        world.enqueue(*items)
        return world

    yield from stops(begin, PeopleWorld.settle, least=21)


def check_texts(world: PeopleWorld, where: str) -> None:
    accepted = ENDS.keys() - {"refused", "opted-out"}
    assert world.sends() == dict.fromkeys(accepted, 1), where
    for name, status in ENDS.items():
        found = world.found(name)
        assert (found["status"], found["attempts"]) == (status, 1), f"{where}: {name}"
        assert "completedAt" in found
    sids = [world.found(name)["provider_id"] for name in accepted]
    assert len(set(sids)) == len(sids), where  # also identical texts have separate ids
    assert world.listed() == sorted([THERE, STOPPED, AWAY]), where
    assert len(world.queues.dead[SMS]) == 1, where
    assert not world.queues.dead[FEEDBACK], where


def test_each_sms_message_is_sent_once_and_gets_its_right_status_wherever_a_function_stops(
    new_people_world: NewWorld,
) -> None:
    for world, where in each_stop(new_people_world, *TEXTS):
        check_texts(world, where)


def test_an_sms_message_to_a_number_that_was_reported_as_a_landline_is_suppressed(
    new_people_world: NewWorld,
) -> None:
    world = new_people_world()
    world.enqueue(fated_sms("landline", THERE))
    world.settle()
    world.enqueue(fated_sms("later", THERE))
    world.settle()
    assert world.found("later")["status"] == "suppressed"
    assert world.sends() == {"landline": 1}


def test_identical_sms_messages_are_sent_once_each_even_if_some_responses_are_lost(
    new_people_world: NewWorld,
) -> None:
    """The same words to the same number at the same time: one look-up must not take another's for its own."""
    world = new_people_world()
    world.enqueue(
        *(fated_sms(f"{kind}-{number}", text="same") for kind in ("a", "lost-answer") for number in "12")
    )
    world.settle()
    assert set(world.sends().values()) == {1}
    assert len(world.sends()) == 4


def test_two_identical_sms_messages_are_sent_once_each_if_send_sms_crashed_before_a_submit(
    new_people_world: NewWorld,
) -> None:
    world = new_people_world()
    world.enqueue(fated_sms("silent-a", text="same"), fated_sms("silent-b", text="same"))
    first_submit = 3  # the list's read, the claim of the first; then its submit, and its record
    world.outside.stop = (first_submit + 2, "before")
    world.settle()
    assert world.outside.stopped_at == "before submit"
    assert world.sends() == {"silent-a": 1, "silent-b": 1}


def test_an_sms_message_is_sent_although_an_identical_one_was_submitted_and_the_index_of_ids_lags(
    new_people_world: NewWorld,
) -> None:
    """The index that tells whose a provider's id is lags behind, as DynamoDB's indexes may."""
    world = new_people_world()
    world.enqueue(fated_sms("silent-a", text="same"), fated_sms("silent-b", text="same"))
    world.outside.stop = (2, "after")
    world.deliver(SMS)
    assert world.outside.stopped_at == "after submit"
    seen: dict[str, tuple[float, set[str]]] = {}
    real = world.ledger.ids_on_line

    def lagging(line: str, since: float) -> set[str]:
        then, known = seen.setdefault(line, (world.clock(), real(line, since)))
        return known if world.clock() - then < 1 else real(line, since)

    world.ledger.ids_on_line = lagging  # type: ignore[method-assign]
    world.settle()
    assert world.sends() == {"silent-a": 1, "silent-b": 1}


@pytest.mark.parametrize("order", [(FEEDBACK, PUSH, SMS), (SMS, PUSH, FEEDBACK)])
def test_an_sms_message_gets_the_same_status_whichever_function_runs_first(
    new_people_world: NewWorld, order: tuple[str, ...]
) -> None:
    world = new_people_world()
    world.enqueue(*TEXTS)
    world.settle(order)
    check_texts(world, str(order))


def test_each_push_gets_the_right_status_and_is_repeated_only_if_its_outcome_is_unknown(
    new_people_world: NewWorld,
) -> None:
    for world, where in each_stop(new_people_world, *PUSHES):
        for name, statuses in PUSH_ENDS.items():
            assert world.found(name, "push")["status"] in statuses, f"{where}: {name}"
        sends = world.sends()
        lost_answer = sends.pop("lost-answer")
        assert lost_answer in ({2, 3} if where.startswith(IN_DOUBT) else {2}), where
        assert sends.keys() == {"p", "q", "throttled-once"}, where
        assert sum(sends.values()) <= (4 if where.startswith(IN_DOUBT) else 3), where
        assert world.listed() == [f"{ENDPOINT}disabled"], where


def test_the_first_push_to_a_disabled_endpoint_fails_and_the_next_push_is_suppressed(
    new_people_world: NewWorld,
) -> None:
    world = new_people_world()
    world.enqueue(fated_push("disabled"))
    world.settle()
    assert world.found("disabled", "push")["status"] == "failed"
    world.enqueue(fated_push("disabled-later", to=f"{ENDPOINT}disabled"))
    world.settle()
    assert world.found("disabled-later", "push")["status"] == "suppressed"
    assert world.sends() == {}


def test_a_retried_push_repeats_the_same_request_with_the_same_collapse_id(
    new_people_world: NewWorld,
) -> None:
    world = new_people_world()
    world.enqueue(fated_push("lost-answer"))
    world.settle()
    first, second = world.sns.published
    assert first == second
    collapse = first["MessageAttributes"]["AWS.SNS.MOBILE.APNS.COLLAPSE_ID"]["StringValue"]
    assert len(collapse) == 32


def test_events_become_dead_letters_if_the_feedback_function_crashes_again_and_again(
    new_people_world: NewWorld,
) -> None:
    world = new_people_world()
    world.enqueue(fated_sms("a"))
    world.deliver(SMS)
    for _ in range(200):
        world.outside.stop = (len(world.outside.calls), "before")
        due = world.queues.next_visible()
        if due is None:
            break
        world.clock.now = max(world.clock.now, due)
        world.deliver(FEEDBACK)
    assert len(world.queues.dead[FEEDBACK]) == 2
    assert world.found("a")["status"] == "sent"


def test_the_checks_of_the_crash_tests_fail_if_an_sms_message_is_sent_twice(
    new_people_world: NewWorld,
) -> None:
    world = new_people_world()
    world.enqueue(*TEXTS)
    world.settle()
    check_texts(world, "undisturbed")
    world.carrier.accepted.append(world.carrier.accepted[0])
    with pytest.raises(AssertionError):
        check_texts(world, "doubled")
