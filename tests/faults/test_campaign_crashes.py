"""collect and compose, stopped at every outside call, redelivered as their queues would."""

from collections.abc import Callable

import pytest

from tests.support.faults.campaign_world import RUN, WEEKLY, CampaignWorld, People, address
from tests.support.faults.outside import Side
from tests.support.faults.stops import stops

NewWorld = Callable[..., CampaignWorld]
EVERYBODY = {f"p{at}" for at in range(10)}


def check_one_message_each(world: CampaignWorld, where: str, starts: int = 1) -> None:
    """Check that everybody has one message, except people who opted out, are left out, or are invalid entries
    of the audience. A later start prepares the next attempt of each message in the ledger.
    """
    people = EVERYBODY - {"p1", "p4", "p7"}
    assert world.mailbox().keys() == people, where
    assert {key: (each["status"], each.get("attempts", 0)) for key, each in world.in_ledger().items()} == {
        "p4": ("suppressed", 1),
        **{key: ("retrying", starts - 1) for key in people if starts > 1},
    }, where
    assert world.run().state == "collected", where
    assert world.dead() == 0, where


def prepared(new_world: NewWorld) -> CampaignWorld:
    world = new_world(People(10, bad=frozenset({1})))
    world.preferences.opt_out(address("p4"), "news", "page")
    world.asking.leaves_out = {"p7"}
    return world


def test_each_eligible_person_gets_one_message_if_no_function_crashes(new_campaign_world: NewWorld) -> None:
    world = prepared(new_campaign_world)
    world.start()
    world.settle()
    check_one_message_each(world, "no stop")
    item = world.mailbox()["p9"]
    assert item == {
        "id": world.run().id_of("p9"),
        "event_type": "mail",
        "lane": "bulk",
        "topic": "news",
        "template": "default",
        "greeting": "hi",
        "email": address("p9"),
        "first_name": "Ada",
        "last_name": "L",
        "campaign_start": {"campaign": "weekly", "run": RUN, "start": world.run().valid_from},
    }
    run = world.run()
    assert (run.pages, run.recipients, run.refused) == (3, 9, 1)
    assert (run.composed, run.opted_out, run.left_out, run.existed, run.failed) == (7, 1, 1, 0, 0)
    assert run.faults == ("line 3, column email: is empty",)


def test_each_eligible_person_gets_one_message_and_a_page_counts_once_wherever_a_function_crashes(
    new_campaign_world: NewWorld,
) -> None:
    def run(world: CampaignWorld) -> None:
        world.start()
        world.settle()

    undisturbed = prepared(new_campaign_world)
    run(undisturbed)
    assert {"page", "compose", "put_item", "update_item", "send_message_batch"} <= undisturbed.calls().keys()
    for world, where in stops(lambda: prepared(new_campaign_world), run):
        check_one_message_each(world, where)
        state = world.run()
        # The page at which it stopped may be read once more, and no page after it; each is counted once.
        assert 3 <= world.calls()["page"] <= 4, where
        assert (state.pages, state.recipients, state.refused) == (3, 9, 1), where


@pytest.mark.parametrize("side", ["before", "after"])
def test_each_eligible_person_gets_one_message_wherever_compose_crashes_among_concurrent_puts(
    new_campaign_world: NewWorld, side: Side
) -> None:
    stops = set()
    for at in range(4, 16):  # the first chunks' puts are among them
        world = new_campaign_world(People(10, bad=frozenset({1})), WEEKLY, 4)
        world.preferences.opt_out(address("p4"), "news", "page")
        world.asking.leaves_out = {"p7"}
        world.outside.stop = (at, side)
        world.start()
        world.settle()
        stops.add(str(world.outside.stopped_at))
        check_one_message_each(world, f"{world.outside.stopped_at} ({at})")
    assert f"{side} put_item" in stops


def test_a_run_that_is_started_three_times_creates_each_message_once(new_campaign_world: NewWorld) -> None:
    world = prepared(new_campaign_world)
    for number, start in enumerate(("one", "two", "three"), 1):
        world.start(start=start)
        world.settle()
        check_one_message_each(world, start, number)
    puts = world.calls()["put_item"]
    assert (puts, world.run().composed, world.run().existed) == (21, 7, 7)


def test_a_run_whose_queue_messages_were_lost_is_completed_if_it_is_started_again(
    new_campaign_world: NewWorld,
) -> None:
    world = prepared(new_campaign_world)
    world.start()
    while len(world.mailbox()) < 3:
        world.clock.now += 1
        world.deliver("https://sqs/collect", 1)
        world.deliver("https://sqs/audience", 1)
    world.queues.messages.clear()  # both queues are lost
    assert 0 < len(world.mailbox()) < 7
    world.start(start="again")
    world.settle()
    check_one_message_each(world, "again", 2)


def test_a_second_copy_of_each_queue_message_of_a_run_has_no_effect(new_campaign_world: NewWorld) -> None:
    world = prepared(new_campaign_world)
    send = world.queues.send_message_batch

    def twice(**arguments: object) -> object:
        send(**arguments)  # type: ignore[arg-type]
        return send(**arguments)  # type: ignore[arg-type]

    world.queues.send_message_batch = twice  # type: ignore[method-assign,assignment]
    world.start()
    world.start()
    world.settle()
    check_one_message_each(world, "twice")
    assert world.calls()["page"] == 3
