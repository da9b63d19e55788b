"""A stopped run sends no more messages. If it continues, it sends each of the others once."""

from random import Random
from typing import Any

import pytest

from mailroom.campaigns.audience import Recipients
from mailroom.campaigns.definition import Composed, Definition
from mailroom.clock import iso
from mailroom.ledger.run_states import FRESH_SECONDS, STOPPED
from tests.support.faults.campaign_world import AUDIENCE, BULK, COLLECT
from tests.support.faults.stop_world import StopWorld
from tests.support.faults.stops import SIDES, stops

PEOPLE = 16
FEW = 12
"""More than a batch, so that a stop leaves some."""


def ends(world: StopWorld) -> dict[str, int]:
    """Return the number of the run's messages by their end."""
    counts: dict[str, int] = {}
    for item in world.dynamodb.tables["ledger"].items.values():
        end = world.end(item["id"]["S"])
        counts[end] = counts.get(end, 0) + 1
    return counts


def check_sent_once(world: StopWorld) -> None:
    assert ends(world) == {"sent": PEOPLE}
    assert {*world.sends().values()} == {1}
    assert not any(world.queues.dead.values())


@pytest.fixture
def rare_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look a few times an hour, not each minute, whether a day or a pause is over."""
    monkeypatch.setattr("mailroom.campaigns.collector.LOOK_AGAIN_SECONDS", 900)
    monkeypatch.setattr("tests.support.faults.world.MINUTE", 900)


@pytest.mark.parametrize("per_day", [10**6, 12])
@pytest.mark.usefixtures("rare_looks")
def test_a_stopped_run_sends_no_message_until_it_is_started_again_and_then_sends_each_message_once(
    per_day: int,
) -> None:
    world = StopWorld(PEOPLE, per_day)
    world.begin()
    while len(world.accepted_ids()) < 6:
        assert world.play()
    world.stop()
    world.play_on(FRESH_SECONDS)
    out = len(world.accepted_ids())
    world.play_on()
    assert len(world.accepted_ids()) == out < PEOPLE
    assert ends(world) == {"sent": out, f"cancelled: {STOPPED}": PEOPLE - out}
    world.begin()
    world.play_on()
    check_sent_once(world)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.usefixtures("rare_looks")
def test_each_person_gets_one_message_after_random_stops_pauses_and_crashes(seed: int) -> None:
    random = Random(seed)
    world = StopWorld(PEOPLE, random.choice((10**6, 12)))
    world.begin()
    for _ in range(30):
        match random.choices(("play", "crash", "stop", "go on", "pause", "resume"), (12, 4, 1, 2, 2, 2))[0]:
            case "play":
                world.play_on(random.choice((1, 30)))
            case "crash":
                world.outside.stop = len(world.outside.calls) + random.randrange(40), random.choice(SIDES)
                world.play()
                world.outside.stop = None
            case "stop":
                world.stop()
            case "go on":
                world.begin()
            case "pause":
                world.pause()
            case "resume":
                world.resume()
    world.begin()
    world.play_on()
    check_sent_once(world)


def stopped_world(people: int = PEOPLE) -> StopWorld:
    """Return a world whose run was stopped, and whose messages that were not sent are cancelled."""
    world = StopWorld(people)
    world.begin()
    while len(world.accepted_ids()) < 4:
        assert world.play()
    world.stop()
    world.play_on()
    return world


def going_on() -> StopWorld:
    """Return a world whose run was stopped, with its audience collected anew and not composed yet."""
    world = stopped_world()
    world.begin()
    while not world.queues.messages[AUDIENCE]:
        world.clock.now = world.next_due() or world.clock.now
        world.campaign.deliver(COLLECT, 1)
    return world


def test_each_message_of_a_run_that_is_started_again_is_sent_once_wherever_compose_crashes() -> None:
    for world, where in stops(going_on, lambda world: world.campaign.deliver(AUDIENCE), least=16):
        world.play_on()
        assert {*world.sends().values()} == {1}, where
        assert ends(world) == {"sent": PEOPLE}, where


class Corrected:
    """A campaign's module that composes the same for everybody."""

    def __init__(self, **attributes: Any) -> None:
        self._attributes = attributes

    def compose(self, _definition: Definition, recipients: Recipients) -> Composed:
        return dict.fromkeys(recipients.keys, self._attributes)


@pytest.mark.parametrize("seconds", [0, 300, 86_400])
def test_a_cancelled_message_of_a_restarted_run_is_sent_with_its_new_content_at_its_new_time(
    seconds: int,
) -> None:
    world = stopped_world()
    out, send_at = len(world.ses.times), world.clock.now + seconds
    world.campaign.speaks(Corrected(first_name="Augusta", send_at=iso(send_at)))
    world.begin()
    world.play_on()
    check_sent_once(world)
    assert min(world.ses.times[out:]) >= send_at
    assert all("Augusta" in str(request) for request in world.ses.accepted[out:])


def test_scheduled_messages_of_a_run_that_is_started_again_are_sent_with_new_content() -> None:
    world = StopWorld(PEOPLE)
    send_at = world.clock.now + 86_400
    world.campaign.speaks(Corrected(first_name="Ada", send_at=iso(send_at)))
    world.begin()
    world.play_on(300)
    world.stop()
    world.campaign.speaks(Corrected(first_name="Augusta", send_at=iso(send_at)))
    world.begin()
    world.play_on()
    check_sent_once(world)
    assert min(world.ses.times) >= send_at
    assert all("Augusta" in str(request) for request in world.ses.accepted)


def test_cancelled_messages_that_are_composed_again_as_invalid_are_sent_after_a_correction() -> None:
    world = stopped_world()
    before = ends(world)
    world.campaign.speaks(Corrected(template=5))
    world.begin()
    world.play_on()
    assert (ends(world), any(world.queues.dead.values())) == (before, False)
    assert world.campaign.run().conflicts == PEOPLE - before["sent"]
    world.campaign.speaks(Corrected())
    world.begin()
    world.play_on()
    check_sent_once(world)


def test_messages_of_a_run_that_is_started_again_are_sent_even_if_the_mailbox_lost_their_items() -> None:
    world = stopped_world()
    for item in [*world.dynamodb.tables["mailbox"].items.values()]:
        world.dynamodb.delete_item(
            TableName="mailbox", Key={name: item[name] for name in ("id", "event_type")}
        )
    world.begin()
    world.play_on()
    check_sent_once(world)


def queued() -> StopWorld:
    """Return a world whose only message is in its queue."""
    world = StopWorld(1)
    world.begin()
    world.campaign.deliver(COLLECT, 1)
    world.campaign.deliver(AUDIENCE)
    world.dispatch()
    return world


def test_a_message_with_an_unknown_outcome_is_not_submitted_again_if_its_run_is_stopped() -> None:
    for world, where in stops(queued, lambda world: world.deliver(BULK), least=3):
        if "before send_email" not in where:
            continue
        world.stop()
        world.play_on()
        assert (world.sends(), ends(world)) == ({}, {"failed: outcome_unknown": 1})
        return
    pytest.fail("no stop before the submit")
